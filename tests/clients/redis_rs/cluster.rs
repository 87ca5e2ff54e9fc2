use redis::RedisResult;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;

pub async fn connect(url: &str) -> RedisResult<ClusterConnection> {
    // 0: a check that is sent twice may charge twice.
    ClusterClient::builder([url]).retries(0).build()?.get_async_connection().await
}
