//! The connection of a worker, which lives longer than its credentials: a token in a file is renewed, and its requests have the token that the connection was
//! opened with. Knows when a connection is opened anew; does not know what is asked.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::connection::{Access, Connection};
use crate::error::RemoteError;

/// The connection to a server, for a session and its leases.
pub(crate) struct Line {
    access: Access,
    interrupted: Arc<AtomicBool>,
    current: RefCell<Rc<Connection>>,
}

impl Line {
    /// Connects.
    pub(crate) async fn open(access: &Access, interrupted: &Arc<AtomicBool>) -> Result<Line, RemoteError> {
        let connection = Connection::open(access, interrupted).await?;
        let current = RefCell::new(Rc::new(connection));
        Ok(Line { access: access.clone(), interrupted: interrupted.clone(), current })
    }

    /// The connection.
    pub(crate) fn current(&self) -> Rc<Connection> {
        self.current.borrow().clone()
    }

    /// Opens the connection anew with the credentials of now, unless that has happened since the one that the server refused.
    pub(crate) async fn renew(&self, refused: &Rc<Connection>) -> Result<(), RemoteError> {
        if Rc::ptr_eq(refused, &self.current()) {
            let opened = Connection::open(&self.access, &self.interrupted).await?;
            *self.current.borrow_mut() = Rc::new(opened);
        }
        Ok(())
    }

    /// What `ask` gives; if the server refuses the credentials, what it gives with those of now.
    pub(crate) async fn asked<T>(
        &self,
        ask: impl AsyncFn(&Connection) -> Result<T, RemoteError>,
    ) -> Result<T, RemoteError> {
        let current = self.current();
        match ask(&current).await {
            Err(error) if error.is_unauthenticated() => {
                self.renew(&current).await?;
                ask(&self.current()).await
            }
            answer => answer,
        }
    }
}
