//! A repository of an OCI registry, by the distribution specification 1.1. Knows its requests; [`super::exchange`] sends them.

use ureq::http::Method;

use super::digest::OciDigest;
use super::error::RegistryError;
use super::exchange::{Answer, Call, Exchange, Means};
use super::manifest::{Descriptor, INDEX, ImageIndex, LARGEST, MANIFEST};
use super::reference::{Reference, check_tag};
use super::repository::Repository;

/// The most pages of a list.
const MOST_PAGES: usize = 64;
/// How often an upload, or an entry in the list of signatures, is tried.
const TRIES: u32 = 5;

/// A repository of a registry.
pub struct Remote {
    exchange: Exchange,
    name: String,
}

impl Remote {
    /// The repository of a reference.
    ///
    /// # Errors
    /// It cannot be reached by these means.
    pub fn new(reference: &Reference, means: Means) -> Result<Remote, RegistryError> {
        let exchange = Exchange::new(&reference.host, &reference.name, means)?;
        Ok(Remote { exchange, name: reference.repository() })
    }

    fn get(&self, what: &str, address: String, accept: &str, limit: u64) -> Result<Answer, RegistryError> {
        let headers = [("Accept", accept.to_string())];
        let call = Call { what, method: Method::GET, address, headers: &headers, body: None, limit, repeats: true };
        self.exchange.send(&call)
    }

    /// The manifest or the list that a tag or a digest names.
    fn named(&self, what: &str, name: &str) -> Result<Option<Answer>, RegistryError> {
        let address = self.exchange.address(&format!("manifests/{name}"));
        let answer = self.get(what, address, &format!("{MANIFEST}, {INDEX}"), LARGEST)?;
        match answer.status {
            200 => Ok(Some(answer)),
            404 => Ok(None),
            _ => Err(self.exchange.refused(what, &answer)),
        }
    }

    /// The same with the digest checked.
    fn checked(&self, what: &str, answer: Answer, expected: Option<&OciDigest>) -> Result<Vec<u8>, RegistryError> {
        let found = OciDigest::of(&answer.body);
        let stated = answer.header("docker-content-digest").and_then(|text| text.parse().ok());
        match expected.cloned().into_iter().chain(stated).find(|expected| *expected != found) {
            None => Ok(answer.body),
            Some(expected) => {
                Err(RegistryError::Changed { what: format!("{what} of {}", self.place()), found, expected })
            }
        }
    }

    /// Sends a manifest under a tag or a digest, and returns whether the registry lists what refers to others.
    fn put(&self, what: &str, name: &str, manifest: &Descriptor, bytes: &[u8]) -> Result<bool, RegistryError> {
        let headers = [("Content-Type", manifest.media_type.clone())];
        let address = self.exchange.address(&format!("manifests/{name}"));
        let call = Call {
            what,
            method: Method::PUT,
            address,
            headers: &headers,
            body: Some(bytes),
            limit: LARGEST,
            repeats: true,
        };
        let answer = self.exchange.send(&call)?;
        match answer.is_success() {
            true => Ok(answer.header("oci-subject").is_some()),
            false => Err(self.exchange.refused(what, &answer)),
        }
    }

    /// Uploads contents in one piece.
    fn upload(&self, blob: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError> {
        const WHAT: &str = "upload contents";
        let begin = Call {
            what: WHAT,
            method: Method::POST,
            address: self.exchange.address("blobs/uploads/"),
            headers: &[],
            body: Some(&[]),
            limit: LARGEST,
            repeats: true,
        };
        let begun = self.exchange.send(&begin)?;
        if begun.status == 201 {
            return Ok(());
        }
        if begun.status != 202 {
            return Err(self.exchange.refused(WHAT, &begun));
        }
        let to = self.exchange.location(&begun, &begin.address)?;
        let separator = if to.contains('?') { '&' } else { '?' };
        let end = Call {
            what: WHAT,
            method: Method::PUT,
            address: format!("{to}{separator}digest=sha256%3A{}", blob.digest.hex()),
            headers: &[("Content-Type", "application/octet-stream".into())],
            body: Some(bytes),
            limit: LARGEST,
            // After a part of it arrived, the upload begins again.
            repeats: false,
        };
        let answer = self.exchange.send(&end)?;
        match answer.is_success() {
            true => Ok(()),
            false => Err(self.exchange.refused(WHAT, &answer)),
        }
    }

    /// All pages of a list, each read by `read`; none if there is no such list.
    fn pages(
        &self,
        what: &str,
        first: String,
        accept: &str,
        read: &mut dyn FnMut(Answer) -> Result<bool, RegistryError>,
    ) -> Result<bool, RegistryError> {
        let mut address = first;
        for _ in 0..MOST_PAGES {
            let answer = self.get(what, address.clone(), accept, LARGEST)?;
            match answer.status {
                200 => {}
                400 | 404 | 405 | 501 => return Ok(false),
                _ => return Err(self.exchange.refused(what, &answer)),
            }
            let next = answer.header("link").and_then(next_page).map(|to| self.exchange.resolved(to, &address));
            let next = next.transpose()?;
            if !read(answer)? {
                return Ok(false);
            }
            match next {
                Some(next) => address = next,
                None => return Ok(true),
            }
        }
        Err(RegistryError::TooLarge { what: format!("a list of {}", self.place()), limit: MOST_PAGES as u64 * LARGEST })
    }
}

/// The address of the next page in a header `Link`.
fn next_page(link: &str) -> Option<&str> {
    let (address, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = |parameter: &str| parameter.trim().replace('"', "").eq_ignore_ascii_case("rel=next");
    parameters.split(';').any(is_next).then_some(address)
}

impl Repository for Remote {
    fn place(&self) -> String {
        format!("`{}`", self.name)
    }

    fn tags(&self) -> Result<Vec<String>, RegistryError> {
        #[derive(serde::Deserialize)]
        struct Tags {
            tags: Option<Vec<String>>,
        }
        let mut tags = vec![];
        self.pages("list tags", self.exchange.address("tags/list?n=1000"), "application/json", &mut |answer| {
            let page: Tags = serde_json::from_slice(&answer.body).map_err(|source| RegistryError::Document {
                what: format!("the list of tags in {}", self.place()),
                source,
            })?;
            // What cannot be a tag of an artifact is not offered.
            tags.extend(page.tags.unwrap_or_default().into_iter().filter(|tag| check_tag(tag).is_ok()));
            Ok(true)
        })?;
        Ok(tags)
    }

    fn tagged(&self, tag: &str) -> Result<Option<Vec<u8>>, RegistryError> {
        const WHAT: &str = "look up a tag";
        self.named(WHAT, tag)?.map(|answer| self.checked("the manifest", answer, None)).transpose()
    }

    fn manifest(&self, digest: &OciDigest) -> Result<Option<Vec<u8>>, RegistryError> {
        let answer = self.named("fetch a manifest", &digest.to_string())?;
        answer.map(|answer| self.checked("the manifest", answer, Some(digest))).transpose()
    }

    fn blob(&self, blob: &Descriptor) -> Result<Vec<u8>, RegistryError> {
        const WHAT: &str = "fetch contents";
        let address = self.exchange.address(&format!("blobs/{}", blob.digest));
        let answer = self.get(WHAT, address, "*/*", blob.size)?;
        match answer.status {
            200 => {}
            404 => return Err(RegistryError::Missing { place: self.place(), digest: blob.digest.clone() }),
            _ => return Err(self.exchange.refused(WHAT, &answer)),
        }
        let (what, found) = (format!("{} of {}", blob.media_type, self.place()), OciDigest::of(&answer.body));
        match (answer.body.len() as u64, found == blob.digest) {
            (found, _) if found != blob.size => Err(RegistryError::Size { what, found, stated: blob.size }),
            (_, false) => Err(RegistryError::Changed { what, found, expected: blob.digest.clone() }),
            (_, true) => Ok(answer.body),
        }
    }

    fn has_blob(&self, blob: &Descriptor) -> Result<bool, RegistryError> {
        const WHAT: &str = "look for contents";
        let address = self.exchange.address(&format!("blobs/{}", blob.digest));
        let call =
            Call { what: WHAT, method: Method::HEAD, address, headers: &[], body: None, limit: 0, repeats: true };
        let answer = self.exchange.send(&call)?;
        match answer.status {
            200 => Ok(true),
            404 => Ok(false),
            _ => Err(self.exchange.refused(WHAT, &answer)),
        }
    }

    fn put_blob(&self, blob: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError> {
        for attempt in 1.. {
            let error = match self.upload(blob, bytes) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let may_pass = match &error {
                RegistryError::Unreachable { .. } => true,
                // A registry forgets uploads, too.
                RegistryError::Status { status, .. } => matches!(status, 404 | 408 | 416 | 425 | 429 | 500..),
                _ => false,
            };
            if !may_pass || attempt >= TRIES {
                return Err(error);
            }
            self.exchange.pause(attempt, None)?;
            // The answer may have been lost after everything had arrived.
            if self.has_blob(blob)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn put_manifest(&self, manifest: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError> {
        self.put("write a manifest", &manifest.digest.to_string(), manifest, bytes).map(drop)
    }

    fn tag(&self, tag: &str, manifest: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError> {
        self.put("write a tag", tag, manifest, bytes).map(drop)
    }

    fn referrers(&self, subject: &OciDigest) -> Result<Vec<Descriptor>, RegistryError> {
        let mut found = vec![];
        let address = self.exchange.address(&format!("referrers/{subject}"));
        let has_list = self.pages("list signatures", address, INDEX, &mut |answer| {
            let is_list = answer.header("content-type").is_some_and(|of| of.split(';').next() == Some(INDEX));
            if is_list {
                let what = format!("the list of signatures in {}", self.place());
                found.extend(ImageIndex::read(&what, &answer.body)?.manifests);
            }
            Ok(is_list)
        })?;
        if has_list { Ok(found) } else { Ok(self.fallback(subject)?.manifests) }
    }

    fn refer(&self, subject: &OciDigest, manifest: &Descriptor, bytes: &[u8]) -> Result<(), RegistryError> {
        if self.put("write a signature", &manifest.digest.to_string(), manifest, bytes)? {
            return Ok(());
        }
        // The registry does not list it. Two clients may extend the list at once, so look whether it was kept.
        for attempt in 1..=TRIES {
            let mut list = self.fallback(subject)?;
            if list.manifests.iter().any(|entry| entry.digest == manifest.digest) {
                return Ok(());
            }
            if attempt > 1 {
                self.exchange.pause(attempt - 1, None)?;
            }
            list.manifests.push(manifest.clone());
            let list = list.encode();
            self.put("write the list of signatures", &subject.fallback_tag(), &Descriptor::of(INDEX, &list), &list)?;
        }
        let kept = self.fallback(subject)?.manifests.iter().any(|entry| entry.digest == manifest.digest);
        if kept { Ok(()) } else { Err(RegistryError::Contended { place: self.place() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_that_of_the_header() {
        assert_eq!(next_page("</v2/a/tags/list?last=b&n=1>; rel=\"next\""), Some("/v2/a/tags/list?last=b&n=1"));
        assert_eq!(next_page("</x>; rel=\"prev\""), None);
        assert_eq!(next_page("nonsense"), None);
    }
}
