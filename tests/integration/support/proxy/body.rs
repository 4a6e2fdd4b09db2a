//! Bodies of answers as they leave the proxy: whole, cut, stalled, or a watch with something wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyDataStream, BodyExt as _, Full, StreamBody};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Sender, channel};

use super::script::WatchFault;

pub(super) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Body = BoxBody<Bytes, Error>;

/// So that what was sent before a break reaches the client before the break does.
const FLUSH: Duration = Duration::from_millis(20);

pub(super) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed()
}

/// The first bytes; then the connection breaks.
pub(super) fn broken(bytes: Bytes) -> Body {
    stream(|out| async move {
        let _ = out.send(Ok(bytes)).await;
        tokio::time::sleep(FLUSH).await;
        let _ = out.send(Err("the script ends the connection here".into())).await;
    })
}

/// The first bytes; then nothing, for as long as the client has patience.
pub(super) fn stalled(bytes: Bytes) -> Body {
    stream(|out| async move {
        let _ = out.send(Ok(bytes)).await;
        out.closed().await;
    })
}

/// A watch, with what is wrong with it and after how many events.
pub(super) fn watch(upstream: kube::client::Body, fault: Option<(WatchFault, usize)>) -> Body {
    stream(move |out| async move {
        let client = out.clone();
        tokio::select! {
            // A client that has gone needs no watch, and the server no connection for it.
            () = client.closed() => {}
            () = relay(BodyDataStream::new(upstream), fault, out) => {}
        }
    })
}

fn stream<F: Future<Output = ()> + Send + 'static>(write: impl FnOnce(Sender<Result<Bytes, Error>>) -> F) -> Body {
    let (out, mut written) = channel(16);
    tokio::spawn(write(out));
    let frames = futures::stream::poll_fn(move |context| written.poll_recv(context));
    BoxBody::new(StreamBody::new(frames.map(|bytes| bytes.map(Frame::data))))
}

/// Passes events on line by line.
async fn relay(
    mut upstream: BodyDataStream<kube::client::Body>,
    fault: Option<(WatchFault, usize)>,
    out: Sender<Result<Bytes, Error>>,
) {
    let mut events = 0;
    let mut buffer = Vec::new();
    let mut latest: BTreeMap<String, Value> = BTreeMap::new();
    loop {
        if let Some((fault, after)) = fault
            && events >= after
        {
            match fault {
                WatchFault::End => return,
                WatchFault::Break => {
                    tokio::time::sleep(FLUSH).await;
                    let _ = out.send(Err("the script ends the watch here".into())).await;
                    return;
                }
                WatchFault::Silence => return out.closed().await,
                WatchFault::Error(code) => {
                    let status = super::status_body(code, if code == 410 { "Expired" } else { "InternalError" });
                    let event = json!({"type": "ERROR", "object": status});
                    let _ = out.send(Ok(format!("{event}\n").into())).await;
                    return;
                }
                WatchFault::Repeat | WatchFault::Reorder => {}
            }
        }
        let Some(end) = buffer.iter().position(|byte| *byte == b'\n') else {
            match upstream.next().await {
                Some(Ok(chunk)) => {
                    buffer.extend_from_slice(&chunk);
                    continue;
                }
                Some(Err(error)) => {
                    let _ = out.send(Err(error.into())).await;
                    return;
                }
                None => return,
            }
        };
        let line: Bytes = buffer.drain(..=end).collect();
        events += 1;
        let Some((fault, after)) = fault else {
            if out.send(Ok(line)).await.is_err() {
                return;
            }
            continue;
        };
        let mut sent = vec![line.clone()];
        match fault {
            WatchFault::Repeat if events > after => sent.push(line.clone()),
            WatchFault::Reorder => {
                let event: Value = serde_json::from_slice(&line).unwrap_or_default();
                let uid = event["object"]["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                let before = latest.insert(uid, event["object"].clone());
                if let Some(before) = before.filter(|before| events > after && before["metadata"]["uid"].is_string()) {
                    sent.push(format!("{}\n", json!({"type": "MODIFIED", "object": before})).into());
                }
            }
            _ => {}
        }
        for line in sent {
            if out.send(Ok(line)).await.is_err() {
                return;
            }
        }
    }
}
