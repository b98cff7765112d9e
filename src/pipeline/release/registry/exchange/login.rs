//! What a registry demands of a login, and how kforge meets it: with a password, or with a token from the service that the registry names. Knows who may receive a
//! login; [`super::super::credentials`] knows where it is kept.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use ureq::http::Method;

use super::super::challenge::Challenge;
use super::super::credentials::{CredentialsError, Login, Secret};
use super::super::error::{RegistryError, UsedLogin};
use super::{Access, Answer, Call, Exchange, LARGEST_TEXT, Origin};

impl Exchange {
    /// Looks for what a registry demands, and keeps the header that meets it.
    pub(super) fn log_in(&self, what: &str, refusal: &Answer) -> Result<(), RegistryError> {
        let headers = refusal.headers.get_all("www-authenticate").iter().filter_map(|value| value.to_str().ok());
        let challenge =
            Challenge::parse(headers).map_err(|why| RegistryError::Challenge { host: self.host.clone(), why })?;
        let found = self.credentials.of(&self.host, &self.means.interrupted).map_err(|error| match error {
            CredentialsError::Interrupted => RegistryError::Interrupted,
            error => RegistryError::Credentials(error),
        })?;
        {
            let mut state = self.state.borrow_mut();
            state.used = match (&found.login, found.silent) {
                (Some((_, place)), _) => UsedLogin::Kept(place.clone()),
                (None, Some((helper, end))) => UsedLogin::Helper { helper, end },
                (None, None) => UsedLogin::None(self.host.clone()),
            };
            state.secrets.extend(found.login.iter().flat_map(|(login, _)| login.secrets()));
        }
        let login = found.login.map(|(login, _)| login);
        let authorization = match challenge {
            Challenge::Basic => {
                let basic = login.as_ref().and_then(Login::basic).ok_or_else(|| self.denied(what, refusal))?;
                self.may_receive_login(&self.origin)?;
                basic
            }
            Challenge::Bearer { realm, service } => {
                let token = self.token(what, &realm, service.as_deref(), login.as_ref())?;
                self.state.borrow_mut().secrets.push(token.clone());
                Secret::new(format!("Bearer {}", token.reveal()))
            }
        };
        self.state.borrow_mut().authorization = Some(authorization);
        Ok(())
    }

    /// Checks that a login may go to an origin. A demand that came over a network in plain text may name any service, as whoever sits between may have written
    /// it.
    pub(super) fn may_receive_login(&self, origin: &Origin) -> Result<(), RegistryError> {
        let own = &self.origin;
        if !own.https && !own.is_here() {
            return Err(RegistryError::PlainLogin(own.host.clone()));
        }
        match origin.https || origin.is_here() && own.is_here() {
            true => Ok(()),
            false => Err(RegistryError::PlainLogin(origin.host.clone())),
        }
    }

    /// A token for the repository, from the service that the registry names.
    fn token(
        &self,
        what: &str,
        realm: &str,
        service: Option<&str>,
        login: Option<&Login>,
    ) -> Result<Secret, RegistryError> {
        let origin = self.permitted(realm)?;
        if login.is_some() {
            self.may_receive_login(&origin)?;
        }
        let actions = if self.means.access == Access::Pull { "pull" } else { "pull,push" };
        let scope = format!("repository:{}:{actions}", self.repository);
        let mut fields = vec![("scope", scope.as_str())];
        fields.extend(service.map(|service| ("service", service)));
        let answer = match login {
            Some(Login::Identity(token)) => {
                fields.extend([
                    ("grant_type", "refresh_token"),
                    ("client_id", "kforge"),
                    ("refresh_token", token.reveal()),
                ]);
                let form = Secret::new(form(&fields));
                // It also occurs as the form has it.
                let encoded = utf8_percent_encode(token.reveal(), RESERVED).to_string();
                self.state.borrow_mut().secrets.push(Secret::new(encoded));
                let call = Call {
                    what,
                    method: Method::POST,
                    address: realm.into(),
                    headers: &[("Content-Type", "application/x-www-form-urlencoded".into())],
                    body: Some(form.reveal().as_bytes()),
                    limit: LARGEST_TEXT,
                    repeats: true,
                };
                self.repeated(&call, &origin, realm, None)?
            }
            login => {
                let address = format!("{realm}{}{}", if realm.contains('?') { '&' } else { '?' }, form(&fields));
                let call = Call {
                    what,
                    method: Method::GET,
                    address: address.clone(),
                    headers: &[],
                    body: None,
                    limit: LARGEST_TEXT,
                    repeats: true,
                };
                self.repeated(&call, &origin, &address, login.and_then(Login::basic).as_ref())?
            }
        };
        match answer.status {
            200 => {}
            401 | 403 => return Err(self.denied(what, &answer)),
            300..=399 => return Err(self.redirect("its service for tokens is at another address than it states")),
            _ => return Err(self.refused(what, &answer)),
        }
        // A service may state both, with the same value.
        #[derive(Deserialize)]
        struct Token {
            token: Option<String>,
            access_token: Option<String>,
        }
        let stated = serde_json::from_slice::<Token>(&answer.body).ok();
        let mut tokens = stated.into_iter().flat_map(|stated| [stated.token, stated.access_token]).flatten();
        let token = tokens.find(|token| !token.is_empty());
        let is_header = |token: &String| token.bytes().all(|b| b.is_ascii_graphic());
        let no_token =
            || RegistryError::Protocol { host: self.host.clone(), why: "its service for tokens gave no token" };
        token.filter(is_header).map(Secret::new).ok_or_else(no_token)
    }
}

/// What stays as it is in a form: letters, digits, and the other unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Fields as a form, or as the query of an address.
fn form(fields: &[(&str, &str)]) -> String {
    let encode = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
    fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded() {
        assert_eq!(form(&[("grant_type", "a&b=c"), ("scope", "x:y,z")]), "grant_type=a%26b%3Dc&scope=x%3Ay%2Cz");
    }
}
