//! Sizes of drafts.
