//! Connections by TLS.

use redis::ConnectionAddr;

use crate::error::{Error, ErrorKind};

/// What URLs begin with that ask for it.
const SCHEMES: [&str; 2] = ["rediss://", "valkeys://"];

/// Sees that a URL asks for nothing that was not compiled in. The driver would name a feature that is none of this crate.
pub(crate) fn check(url: &str) -> Result<(), Error> {
    if is_asked_for(url) && !cfg!(feature = "tls") { Err(missing()) } else { Ok(()) }
}

fn is_asked_for(url: &str) -> bool {
    let url = url.trim_start().to_ascii_lowercase();
    SCHEMES.iter().any(|scheme| url.starts_with(scheme))
}

/// Sees that connections to an address can be made: without a choice of cryptography rustls would panic when the first is.
pub(crate) fn prepare(address: &ConnectionAddr) -> Result<(), Error> {
    match address {
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            Err(Error::new(ErrorKind::Invalid, "a server's certificate is always verified: #insecure is not supported"))
        }
        ConnectionAddr::TcpTls { .. } => choose_cryptography(),
        _ => Ok(()),
    }
}

/// For the whole process, as rustls wants it, unless the program has chosen.
#[cfg(feature = "tls")]
fn choose_cryptography() -> Result<(), Error> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // It fails where another thread chose a moment ago.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    Ok(())
}

/// Another crate of the program made the driver able to do it.
#[cfg(not(feature = "tls"))]
fn choose_cryptography() -> Result<(), Error> {
    Err(missing())
}

fn missing() -> Error {
    Error::new(ErrorKind::Invalid, "a URL that begins with rediss:// needs the feature `tls` of redis-rl-client")
}

#[cfg(test)]
mod tests {
    use super::is_asked_for;
    use crate::error::ErrorKind;
    use crate::limiter::Limiter;

    #[test]
    fn tls_is_asked_for_by_the_scheme_of_a_url() {
        for (url, asks) in [
            ("rediss://127.0.0.1:1", true),
            (" REDISS://127.0.0.1:1", true),
            ("valkeys://127.0.0.1:1", true),
            ("redis://127.0.0.1:1", false),
            ("redis://rediss:1", false),
        ] {
            assert_eq!(is_asked_for(url), asks, "{url}");
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn a_url_that_needs_tls_is_refused_where_it_is_not_compiled_in() {
        let url = "rediss://127.0.0.1:1";
        for builder in [Limiter::builder(url), Limiter::cluster([url]), Limiter::sentinel([url], "main")] {
            let error = builder.nodes(1).connect_lazy().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.to_string().contains("feature `tls`"), "{error}");
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn cryptography_is_chosen_before_the_first_connection() {
        Limiter::builder("rediss://127.0.0.1:1").nodes(1).connect_lazy().unwrap();
        assert!(rustls::crypto::CryptoProvider::get_default().is_some());
    }

    #[test]
    fn a_certificate_that_is_not_to_be_verified_is_refused() {
        let error = Limiter::builder("rediss://127.0.0.1:1/#insecure").nodes(1).connect_lazy().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}
