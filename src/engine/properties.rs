//! Properties of the engine over random graphs and edits.
