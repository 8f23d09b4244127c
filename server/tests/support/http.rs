//! A client that can also do what no client should.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Nothing here takes as long; a test that waits for ever tells nobody why.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The text of a request. A body gets its length and, where no header says otherwise, its type.
pub(crate) fn text(method: &str, path: &str, headers: &[&str], body: Option<&[u8]>) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: test\r\n");
    headers.iter().for_each(|header| text += &format!("{header}\r\n"));
    if let Some(body) = body {
        if !headers.iter().any(|header| header.to_ascii_lowercase().starts_with("content-type:")) {
            text += "content-type: application/json\r\n";
        }
        text += &format!("content-length: {}\r\n", body.len());
    }
    text += "\r\n";
    [text.as_bytes(), body.unwrap_or_default()].concat()
}

/// A response in one piece.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It went well.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }

    /// It is an error in OpenAI's form, whole and short.
    pub(crate) fn error(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        assert!(self.body.len() < 10_000, "{} bytes of error", self.body.len());
        let error = self.json()["error"].clone();
        let mut fields: Vec<_> = error.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["code", "message", "param", "type"], "{error}");
        let kind = match status {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        assert_eq!(error["type"], kind, "{error}");
        assert!(error["message"].as_str().is_some_and(|message| message.len() > 5), "{error}");
        error
    }
}

/// A response as it comes.
pub(crate) struct Incoming {
    reader: BufReader<TcpStream>,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

impl Incoming {
    /// Reads a response's head.
    pub(crate) fn head(stream: TcpStream) -> Self {
        Self::next(BufReader::new(stream)).expect("a response")
    }

    /// The next response on a connection; `None` if it was closed.
    pub(crate) fn next(mut reader: BufReader<TcpStream>) -> Option<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        if status == 100 {
            return Self::next(reader);
        }
        let headers = lines[1..].iter().map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        });
        Some(Self { status, headers: headers.collect(), reader })
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| &**value)
    }

    /// The next chunk of a chunked body; `None` after the last one. A connection that breaks before it panics.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or_else(|_| panic!("no chunk: {line:?}"));
        let mut bytes = vec![0; size + 2];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes.truncate(size);
        (size > 0).then_some(bytes)
    }

    /// The rest of this response, and the connection for the next one.
    pub(crate) fn finish(mut self) -> (Response, BufReader<TcpStream>) {
        let mut body = Vec::new();
        if self.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                body.extend(chunk);
            }
        } else if let Some(length) = self.header("content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.reader.read_exact(&mut body).unwrap();
        }
        let body = String::from_utf8(body).unwrap();
        (Response { status: self.status, headers: self.headers, body }, self.reader)
    }

    pub(crate) fn response(self) -> Response {
        self.finish().0
    }
}

/// One request on a connection of its own.
pub(crate) fn exchange(address: SocketAddr, request: &[u8]) -> Response {
    let mut stream = connect(address);
    // A server that refuses a body may stop reading it.
    _ = stream.write_all(request);
    Incoming::head(stream).response()
}

/// The data of every event of a stream. The last one has to be `[DONE]`, which is left out.
pub(crate) fn events(response: &Response) -> Vec<Value> {
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("content-type"), Some("text/event-stream"), "{response:?}");
    let body =
        response.body.strip_suffix("data: [DONE]\n\n").unwrap_or_else(|| panic!("no end: {response:?}"));
    let events = body.split_terminator("\n\n").filter(|event| !event.starts_with(':'));
    let data = events.map(|event| event.strip_prefix("data: ").unwrap_or_else(|| panic!("{event:?}")));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}
