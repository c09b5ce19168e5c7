//! The health service, as its clients see it.

use lda_transport::Transport;
use lda_transport::grpc::wire::SERVICE;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::common::*;

#[test]
fn serving_until_closed() {
    let mut quick = options();
    quick.handshake_timeout = std::time::Duration::from_millis(200);
    let mut node = start(0, quick);
    let endpoint = Endpoint::from_shared(format!("http://{}", address(&node))).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut client =
        runtime.block_on(async { HealthClient::new(endpoint.connect().await.unwrap()) });
    for service in ["", SERVICE] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = runtime.block_on(client.check(request)).unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving);
    }
    let request = HealthCheckRequest { service: "another".to_owned() };
    let status = runtime.block_on(client.check(request)).unwrap_err();
    assert_eq!(status.code(), tonic::Code::NotFound);

    // A client of the health service has no time limit for a hello.
    let request = HealthCheckRequest { service: String::new() };
    let mut watched = runtime.block_on(client.watch(request)).unwrap().into_inner();
    let mut next = || runtime.block_on(watched.message()).ok().flatten();
    assert_eq!(next().unwrap().status(), ServingStatus::Serving);
    std::thread::sleep(std::time::Duration::from_millis(400));
    let mut third = start(1, with_peer(options(), 0, address(&node)));
    expect_up(&mut third, 0);
    expect_up(&mut node, 1);
    assert_eq!(node.rejected().count, 0);

    std::thread::scope(|scope| {
        scope.spawn(|| node.close(PATIENCE));
        // The node reports `NotServing`, unless the connection has ended before.
        if let Some(last) = next() {
            assert_eq!(last.status(), ServingStatus::NotServing);
        }
        assert!(next().is_none());
    });
}
