//! A TCP proxy that makes the API server far away: every byte arrives half a round trip later, without a limit to
//! how many. The TCP handshake, which the kernel answers at once, is made up for before a connection's first byte.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// A kubeconfig that leads to the same server through a proxy with this round trip time, as long as the runtime lives.
pub(crate) fn kubeconfig(runtime: &tokio::runtime::Runtime, direct: &Path, round_trip: Duration) -> PathBuf {
    if round_trip.is_zero() {
        return direct.to_owned();
    }
    let mut config: Value = serde_json::from_slice(&std::fs::read(direct).expect("a kubeconfig")).expect("JSON");
    let server = config["clusters"][0]["cluster"]["server"].as_str().expect("a server").to_owned();
    let target = server.trim_start_matches("https://").to_owned();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = listener.local_addr().expect("an address");
    runtime.spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let target = target.clone();
            tokio::spawn(async move {
                if let Ok(server) = TcpStream::connect(&target).await {
                    join(client, server, round_trip).await;
                }
            });
        }
    });
    config["clusters"][0]["cluster"]["server"] = format!("https://{address}").into();
    let path = direct.with_file_name(format!("delayed-{}.kubeconfig", address.port()));
    std::fs::write(&path, config.to_string()).expect("a kubeconfig is written");
    path
}

async fn join(client: TcpStream, server: TcpStream, round_trip: Duration) {
    let connected = Instant::now() + round_trip;
    for stream in [&client, &server] {
        let _ = stream.set_nodelay(true);
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let half = round_trip / 2;
    tokio::join!(pump(from_client, to_server, half, connected), pump(from_server, to_client, half, connected));
}

/// Passes bytes on, each `delay` after it came.
async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    delay: Duration,
    connected: Instant,
) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let read = async move {
        loop {
            let mut bytes = Vec::with_capacity(64 << 10);
            match from.read_buf(&mut bytes).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    // What the client could not have sent before it was connected leaves then.
                    let left = Instant::now().max(connected);
                    if sender.send((left + delay, bytes)).is_err() {
                        return;
                    }
                }
            }
        }
    };
    let write = async move {
        while let Some((due, bytes)) = receiver.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    };
    tokio::join!(read, write);
}
