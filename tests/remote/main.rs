//! Remote caches that speak the Remote Execution API: a server of the test's own with every fault that a test asks for, and a real server.

mod casd;
mod certificates;
mod plain;
mod server;
mod server_tests;
