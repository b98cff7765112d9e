//! Remote caches that speak the Remote Execution API: a server of the test's own with every fault that a test asks for, a real server, and a proxy
//! that delays.

mod casd;
mod certificates;
mod client;
mod plain;
mod proxy;
mod proxy_tests;
mod server;
mod server_tests;
