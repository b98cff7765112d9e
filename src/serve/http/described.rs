//! References that other interfaces send: each is described once, and no more than a few at a time, because it takes seconds and a process. Also what those
//! interfaces remember besides the service.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OnceCell, Semaphore};

use super::App;
use crate::service::{NoReference, ReferencePackage, Service};
use kforge_foundation::base::Digest;

/// The most entries that are remembered.
const MOST_KEPT: usize = 4096;

/// How many references are described at once.
const AT_ONCE: usize = 2;

/// A package, or the word and the text of why there is none.
pub(super) type Described = Result<ReferencePackage, (String, String)>;

/// A map of the last entries.
pub(super) struct Kept<K, V> {
    map: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Kept { map: HashMap::new(), order: VecDeque::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Kept<K, V> {
    pub(super) fn put(&mut self, key: K, value: V) {
        if self.map.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
        }
        while self.map.len() > MOST_KEPT {
            let Some(oldest) = self.order.pop_front() else { return };
            self.map.remove(&oldest);
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.map.get(key).cloned()
    }

    pub(super) fn remove(&mut self, key: &K) {
        if self.map.remove(key).is_some() {
            self.order.retain(|other| other != key);
        }
    }
}

/// The references.
pub(super) struct References {
    cells: Mutex<Kept<Digest, Arc<OnceCell<Described>>>>,
    places: Semaphore,
}

impl Default for References {
    fn default() -> Self {
        References { cells: Mutex::default(), places: Semaphore::new(AT_ONCE) }
    }
}

impl References {
    /// The package of a reference with this digest: described now, unless it was before. The error is why the server cannot describe any.
    pub(super) async fn package(
        &self,
        app: &App,
        digest: Digest,
        describe: impl FnOnce(&Service) -> Result<ReferencePackage, NoReference> + Send + 'static,
    ) -> Result<Described, String> {
        let cell = {
            let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
            cells.get(&digest).unwrap_or_else(|| {
                let cell = Arc::new(OnceCell::new());
                cells.put(digest, cell.clone());
                cell
            })
        };
        let described = cell.get_or_try_init(|| async {
            match self.blocking(app, describe).await? {
                Ok(package) => Ok(Ok(package)),
                Err(NoReference::Refused { kind, message }) => Ok(Err((kind, message))),
                Err(NoReference::Unavailable(why)) => Err(why),
            }
        });
        described.await.cloned()
    }

    /// Does what takes a process, of which there are only a few at once.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        app: &App,
        work: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> Result<T, String> {
        let _place = self.places.acquire().await.map_err(|e| e.to_string())?;
        let service = app.service.clone();
        tokio::task::spawn_blocking(move || work(&service)).await.map_err(|e| e.to_string())
    }
}

/// The id under which the service keeps a task of an interface. Clients choose any text, and every interface has ids of its own.
pub(super) fn kept_id(interface: &str, id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    match id.len() <= 90 && !id.is_empty() && id.chars().all(plain) {
        true => format!("{interface}:{id}"),
        false => format!("{interface}.{}", Digest::of(id.as_bytes()).hex()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entries_are_kept() {
        let mut kept = Kept::default();
        for n in 0..MOST_KEPT + 3 {
            kept.put(n, n);
            kept.put(n, n + 1);
        }
        assert_eq!((kept.get(&2), kept.get(&3), kept.order.len()), (None, Some(4), MOST_KEPT));
        kept.remove(&3);
        assert_eq!((kept.get(&3), kept.order.len()), (None, MOST_KEPT - 1));
    }

    #[test]
    fn any_text_has_an_id_of_its_own() {
        assert_eq!(kept_id("gym", "a.b-1"), "gym:a.b-1");
        let long = "x".repeat(100);
        for odd in ["", "a b", "ü", "a/b", long.as_str()] {
            let id = kept_id("gym", odd);
            assert!(
                id.len() <= 100 && id.starts_with("gym.") && id[4..].chars().all(|c| c.is_ascii_hexdigit()),
                "{id}"
            );
        }
        assert_ne!(kept_id("gym", "a b"), kept_id("gym", "a c"));
    }
}
