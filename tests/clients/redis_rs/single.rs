use redis::aio::ConnectionManager;
use redis::{Client, RedisResult};

pub async fn connect(url: &str) -> RedisResult<ConnectionManager> {
    Client::open(url)?.get_connection_manager().await
}
