//! Tests of the proxy that delays.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::plain::Plain;
use crate::proxy::Proxy;
use crate::server::{Options, Server};

/// A server that sends back what it gets.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || std::io::copy(&mut &stream, &mut &stream));
        }
    });
    address
}

fn round_trip(stream: &mut TcpStream) -> Duration {
    let began = Instant::now();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    began.elapsed()
}

#[test]
fn a_round_trip_takes_twice_the_delay_and_no_less() {
    let proxy = Proxy::start(echo(), Duration::from_millis(20));
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    let trips: Vec<Duration> = (0..5).map(|_| round_trip(&mut stream)).collect();
    let least = trips.iter().min().unwrap();
    assert!(*least >= Duration::from_millis(40) && *least < Duration::from_millis(60), "{trips:?}");
    proxy.set_delay(Duration::ZERO);
    let least = (0..5).map(|_| round_trip(&mut stream)).min().unwrap();
    assert!(least < Duration::from_millis(20), "{least:?}");
}

#[test]
fn what_is_under_way_does_not_hold_up_what_follows() {
    let proxy = Proxy::start(echo(), Duration::from_millis(50));
    let stream = TcpStream::connect(proxy.address()).unwrap();
    let sent: Vec<u8> = (0..32 << 20).map(|at: u32| (at % 251) as u8).collect();
    let began = Instant::now();
    let got = std::thread::scope(|scope| {
        scope.spawn(|| (&stream).write_all(&sent).and_then(|()| stream.shutdown(std::net::Shutdown::Write)));
        let mut got = vec![];
        (&stream).read_to_end(&mut got).unwrap();
        got
    });
    // Were each of the 128 largest reads to wait for the one before, this would take 13 seconds.
    assert!(got == sent && began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn connections_end_with_the_proxy_and_with_the_server() {
    let proxy = Proxy::start(echo(), Duration::ZERO);
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    round_trip(&mut stream);
    let address = proxy.address();
    drop(proxy);
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    // A server of another test may have the port by now. It is no echo.
    let echoes = TcpStream::connect(address).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"x")?;
        let mut got = [0];
        stream.read_exact(&mut got).map(|()| got == *b"x")
    });
    assert!(!echoes.unwrap_or(false));

    let mut server = Server::start(Options::default());
    let proxy = Proxy::start(server.address(), Duration::from_millis(5));
    let client = Plain::new(&proxy.url());
    client.capabilities().unwrap();
    server.stop();
    assert!(client.capabilities().is_err());
}
