//! A headless Chromium, driven over a pipe by the DevTools protocol. A browser ends with its test: once the pipe is
//! closed, nothing holds it.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

/// How long an answer may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// The names under which it is installed.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Why tests of pages are left out.
pub(crate) const NO_BROWSER: &str = "no chromium in PATH; PUSHBACK_DEMAND_BROWSER=1 fails these instead";

/// Whether tests that need a browser run: where there is one, and where one is demanded.
pub(crate) fn is_wanted() -> bool {
    chromium().is_some() || std::env::var_os("PUSHBACK_DEMAND_BROWSER").is_some_and(|value| !value.is_empty())
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

/// One page in a browser of its own.
pub(crate) struct Browser {
    process: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    number: u64,
    session: String,
    events: Vec<Value>,
    profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a file; `fragment` names a place in it.
    pub(crate) fn open(file: &Path, fragment: &str) -> Self {
        let mut browser = Self::start();
        browser.visit(file, fragment);
        browser
    }

    fn start() -> Self {
        let program = chromium().expect("a chromium in PATH, as PUSHBACK_DEMAND_BROWSER is set");
        let profile = tempfile::Builder::new().prefix("pushback-browser-").tempdir().expect("a temporary directory");
        // The protocol is spoken on the file descriptors 3 and 4.
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec 3<&0 4>&1 0</dev/null 1>/dev/null; exec "$0" "$@""#]).arg(program).args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
            "--disable-extensions",
            "--no-first-run",
            "--remote-debugging-pipe",
        ]);
        let home = profile.path();
        command.arg(format!("--user-data-dir={}", home.display())).env("HOME", home).arg("about:blank");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("a browser");
        let requests = process.stdin.take().expect("a pipe");
        let mut answers = BufReader::new(process.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            loop {
                let mut message = Vec::new();
                match answers.read_until(0, &mut message) {
                    Ok(read) if read > 0 => {}
                    _ => return,
                }
                message.pop();
                let message = serde_json::from_slice(&message).expect("a message in JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser =
            Self { process, requests, messages, number: 0, session: String::new(), events: Vec::new(), profile };
        let target = browser.ask("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = browser.ask("Target.attachToTarget", &json!({"targetId": target["targetId"], "flatten": true}));
        browser.ask(
            "Browser.grantPermissions",
            &json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}),
        );
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), &json!({}));
        }
        browser.ask("Emulation.setFocusEmulationEnabled", &json!({"enabled": true}));
        browser.size(1280, 900);
        browser
    }

    /// Loads a file.
    pub(crate) fn visit(&mut self, file: &Path, fragment: &str) {
        let url = url::Url::from_file_path(file).expect("an absolute path");
        let url = if fragment.is_empty() { url.to_string() } else { format!("{url}#{fragment}") };
        // The same file with another fragment would not be loaded again.
        self.ask("Page.navigate", &json!({"url": "about:blank"}));
        self.wait_for("Page.loadEventFired");
        self.events.clear();
        let begun = self.ask("Page.navigate", &json!({"url": url}));
        assert!(begun["errorText"].is_null(), "{url}: {begun}");
        self.wait_for("Page.loadEventFired");
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.requests.write_all(&bytes).expect("the browser listens");
        self.requests.flush().expect("the browser listens");
        loop {
            let mut message = self.next(method);
            if message["id"].as_u64() == Some(self.number) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn wait_for(&mut self, event: &str) {
        if let Some(at) = self.events.iter().position(|known| known["method"] == event) {
            self.events.remove(at);
            return;
        }
        loop {
            let message = self.next(event);
            if message["method"] == event {
                return;
            }
            self.events.push(message);
        }
    }

    fn next(&mut self, wanted: &str) -> Value {
        let message = self.messages.recv_timeout(DEADLINE);
        message.unwrap_or_else(|error| panic!("the browser does not answer {wanted}: {error}"))
    }

    /// The value of an expression in the page; a promise is waited for.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true,
        });
        let mut answer = self.ask("Runtime.evaluate", &parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// The text of an expression's value.
    #[track_caller]
    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.evaluate(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is no text: {value}")).to_owned()
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            " " => (32, " "),
            other => panic!("{other:?} is no key that the tests press"),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let name = if key == " " { "Space" } else { key };
            self.ask(
                "Input.dispatchKeyEvent",
                &json!({"type": kind, "key": key, "code": name, "windowsVirtualKeyCode": code, "text": text}),
            );
        }
    }

    /// Writes into what has the focus.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.ask("Input.insertText", &json!({"text": text}));
    }

    /// Sets the size of the window.
    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let parameters = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", &parameters);
    }

    /// `light` or `dark`, on `screen` or in `print`.
    pub(crate) fn media(&mut self, media: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", &json!({"media": media, "features": features}));
    }

    /// A picture of what is in the window.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let shot = self.ask("Page.captureScreenshot", &json!({"format": "png"}));
        BASE64.decode(shot["data"].as_str().expect("a picture")).expect("base64")
    }

    /// The page as a PDF.
    pub(crate) fn pdf(&mut self) -> Vec<u8> {
        let printed = self.ask("Page.printToPDF", &json!({}));
        BASE64.decode(printed["data"].as_str().expect("a document")).expect("base64")
    }

    /// What the console says, and what the page asked the network for.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // What has happened before the answer has been told before it.
        self.evaluate("0");
        let told = |event: &Value| match event["method"].as_str()? {
            "Runtime.exceptionThrown" => Some(event["params"]["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" => Some(event["params"]["args"].to_string()),
            "Log.entryAdded" => Some(event["params"]["entry"]["text"].to_string()),
            "Network.requestWillBeSent" if event["params"]["type"] != "Document" => {
                Some(event["params"]["request"]["url"].to_string())
            }
            _ => None,
        };
        self.events.iter().filter_map(told).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Its processes may still write into the profile.
        let kept: &OsStr = self.profile.path().as_os_str();
        let _ = std::fs::remove_dir_all(kept);
    }
}
