//! `/.well-known/nq`: the document with the URLs of a responsiveness server.
//!
//! The draft's keys are `small_download_url`, `large_download_url` and `upload_url`. Clients of its
//! first versions, including goresponsiveness, read `small_https_download_url`,
//! `large_https_download_url` and `https_upload_url`; servers of that time send only these. We send
//! both and accept either.
//!
//! Source: draft-ietf-ippm-responsiveness, "Responsiveness Test Server Discovery".

use http::Uri;
use serde::Deserialize;

/// The well-known path.
pub const PATH: &str = "/.well-known/nq";

/// An https URL: host, port and path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// A name or an address; an IPv6 address has no brackets.
    pub host: String,
    /// 443 if the URL has no port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl Url {
    /// Parses `https://host:port/path`; the error names the fault.
    pub fn parse(text: &str) -> Result<Url, String> {
        let uri: Uri = text.parse().map_err(|_| format!("'{text}' is not a URL"))?;
        match uri.scheme_str() {
            Some("https") => {}
            Some(other) => return Err(format!("'{text}' is {other}, not https")),
            None => return Err(format!("'{text}' is not a complete URL")),
        }
        if uri.authority().is_some_and(|all| all.as_str().contains('@')) {
            return Err(format!("'{text}' contains a user name"));
        }
        let host =
            uri.host().filter(|host| !host.is_empty()).ok_or(format!("'{text}' has no host"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_string();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        Ok(Url { host, port: uri.port_u16().unwrap_or(443), path })
    }

    /// Returns `host:port`, as in a request; without the port if it is 443.
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == 443 { host } else { format!("{host}:{}", self.port) }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "https://{}{}", self.authority(), self.path)
    }
}

/// The three URLs, and optionally a different host to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// An object of one byte.
    pub small: Url,
    /// An object of 8 GB or more.
    pub large: Url,
    /// Accepts a POST and discards the body.
    pub upload: Url,
    /// The host whose address is used; `None`: that of the URLs.
    pub endpoint: Option<String>,
}

#[derive(Deserialize)]
struct Written {
    version: u64,
    urls: Urls,
    test_endpoint: Option<String>,
}

// As the draft requires, a duplicate key is an error (serde refuses it), and unknown keys are
// ignored.
#[derive(Deserialize)]
struct Urls {
    small_download_url: Option<String>,
    large_download_url: Option<String>,
    upload_url: Option<String>,
    small_https_download_url: Option<String>,
    large_https_download_url: Option<String>,
    https_upload_url: Option<String>,
}

impl Document {
    /// Parses a server's answer; the error is the draft's reason to ignore it.
    pub fn parse(json: &[u8]) -> Result<Document, String> {
        let written: Written = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        if written.version != 1 {
            return Err(format!("its version is {}, not 1", written.version));
        }
        let urls = written.urls;
        let url = |new: Option<String>, old: Option<String>, key: &str| {
            new.or(old).ok_or(format!("it has no {key}")).and_then(|text| Url::parse(&text))
        };
        let document = Document {
            small: url(
                urls.small_download_url,
                urls.small_https_download_url,
                "small_download_url",
            )?,
            large: url(
                urls.large_download_url,
                urls.large_https_download_url,
                "large_download_url",
            )?,
            upload: url(urls.upload_url, urls.https_upload_url, "upload_url")?,
            endpoint: written.test_endpoint.filter(|host| !host.is_empty()),
        };
        let place = |url: &Url| (url.host.clone(), url.port);
        if place(&document.small) != place(&document.large)
            || place(&document.small) != place(&document.upload)
        {
            return Err("its URLs do not have the same host and port".into());
        }
        Ok(document)
    }

    /// Returns a server's answer to a request for `authority`.
    pub fn write(authority: &str) -> String {
        let small = format!("https://{authority}{SMALL}");
        let large = format!("https://{authority}{LARGE}");
        let upload = format!("https://{authority}{UPLOAD}");
        let urls = serde_json::json!({
            "small_download_url": small, "large_download_url": large, "upload_url": upload,
            "small_https_download_url": small, "large_https_download_url": large, "https_upload_url": upload,
        });
        serde_json::json!({"version": 1, "urls": urls}).to_string()
    }
}

/// Paths of our own server.
pub(crate) const SMALL: &str = "/small";
pub(crate) const LARGE: &str = "/large";
pub(crate) const UPLOAD: &str = "/upload";

#[cfg(test)]
mod tests {
    use super::*;

    fn url(host: &str, port: u16, path: &str) -> Url {
        Url { host: host.into(), port, path: path.into() }
    }

    #[test]
    fn a_written_document_is_read_back() {
        let document = Document::parse(Document::write("example.org:4043").as_bytes()).unwrap();
        assert_eq!(document.small, url("example.org", 4043, "/small"));
        assert_eq!(document.large, url("example.org", 4043, "/large"));
        assert_eq!(document.upload, url("example.org", 4043, "/upload"));
        assert_eq!(document.endpoint, None);
    }

    #[test]
    fn the_first_drafts_keys_are_understood_and_their_extras_ignored() {
        let json = br#"{"version": 1, "extra": [1], "test_endpoint": "edge.example.org", "urls": {
            "small_https_download_url": "https://example.org/s", "large_https_download_url": "https://example.org/l?x=1",
            "https_upload_url": "https://example.org/u", "more": "x"}}"#;
        let document = Document::parse(json).unwrap();
        assert_eq!(document.large, url("example.org", 443, "/l?x=1"));
        assert_eq!(document.endpoint.as_deref(), Some("edge.example.org"));
    }

    #[test]
    fn documents_that_the_draft_ignores_are_refused() {
        let with =
            |version: &str, urls: &str| format!(r#"{{"version": {version}, "urls": {{{urls}}}}}"#);
        let urls = |small: &str, upload: &str| {
            format!(
                r#""small_download_url": "{small}", "large_download_url": "https://a/l", "upload_url": "{upload}""#
            )
        };
        let refused = |json: String| Document::parse(json.as_bytes()).unwrap_err();
        assert!(Document::parse(with("1", &urls("https://a/s", "https://a/u")).as_bytes()).is_ok());
        assert_eq!(
            refused(with("2", &urls("https://a/s", "https://a/u"))),
            "its version is 2, not 1"
        );
        assert_eq!(
            refused(with("1", r#""small_download_url": "https://a/s""#)),
            "it has no large_download_url"
        );
        assert!(refused(with("1", &urls("https://b/s", "https://a/u"))).contains("same host"));
        assert!(refused(with("1", &urls("http://a/s", "https://a/u"))).contains("not https"));
        assert!(
            refused(with(
                "1",
                &(urls("https://a/s", "https://a/u") + r#","upload_url": "https://a/u""#)
            ))
            .contains("duplicate field")
        );
        assert!(Document::parse(b"\xff\x00garbage").is_err());
    }

    #[test]
    fn an_address_of_ipv6_keeps_its_brackets_in_requests_only() {
        let url = Url::parse("https://[::1]:4043/small").unwrap();
        assert_eq!((url.host.as_str(), url.authority().as_str()), ("::1", "[::1]:4043"));
        assert_eq!(url.to_string(), "https://[::1]:4043/small");
    }
}
