//! Who leads, asked beside the load: a connection of its own, blocking and bounded in time. An atomizer that is ready does
//! not lead yet, and until one does what is sent to them is lost with its connection.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use atomizer_node::protocol::request::{
    STANDING_BYTES, Standing, read_standing, write_standing_request,
};
use atomizer_node::protocol::{FRAME_HEADER_BYTES, next_frame};
use clock::Clock;
use sut::SutError;

/// The longest wait for an atomizer to take a connection or to answer.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until one of these says that it leads.
pub(crate) fn wait_until_led(
    atomizers: &[(String, SocketAddr)],
    clock: Clock,
    within: Duration,
) -> Result<(), SutError> {
    let deadline = clock.now().plus(within);
    loop {
        let standings: Vec<io::Result<Standing>> =
            atomizers.iter().map(|(_, address)| standing(*address)).collect();
        if standings.iter().flatten().any(|it| it.leader == it.replica) {
            return Ok(());
        }
        if clock.now() >= deadline {
            let said: Vec<String> = (atomizers.iter().zip(&standings))
                .map(|((name, address), standing)| match standing {
                    Ok(standing) => format!("`{name}` follows {}", standing.leader),
                    Err(error) => format!("`{name}` at {address}: {error}"),
                })
                .collect();
            let said = said.join(", ");
            return Err(SutError::Deploy(format!("no atomizer leads: {said}")));
        }
        clock.sleep_until(clock.now().plus(LOOK_EVERY));
    }
}

/// How an atomizer stands.
pub(crate) fn standing(of: SocketAddr) -> io::Result<Standing> {
    let mut stream = TcpStream::connect_timeout(&of, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut question = Vec::new();
    write_standing_request(&mut question);
    stream.write_all(&question)?;
    let mut answer = [0; STANDING_BYTES];
    stream.read_exact(&mut answer)?;
    let strange = || io::Error::other("its answer is not how it stands");
    let frame = next_frame(&answer, STANDING_BYTES - FRAME_HEADER_BYTES).map_err(|_| strange())?;
    read_standing(frame.ok_or_else(strange)?.payload).map_err(|_| strange())
}
