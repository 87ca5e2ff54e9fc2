//! Workers that are processes of their own and are killed: places must neither be given twice nor be lost.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redis::Connection;

use crate::support::{Server, ask, decide};

const WORKERS: usize = 64;
const PLACES: usize = 10;
const TTL: Duration = Duration::from_millis(400);
/// The variable that tells a worker where the server is.
const PORT: &str = "RL_TEST_WORKER_PORT";

/// Microseconds by the clock that all processes of the machine share.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros().try_into().unwrap()
}

/// A worker: takes a place, works, renews once or not, gives the place back, and says so. It works no longer than its ttl from the sending of
/// the call that gave or renewed the place, as every holder must.
#[test]
#[ignore = "a process that another test starts"]
fn worker() {
    let Ok(port) = std::env::var(PORT) else { return };
    let mut redis: Connection =
        redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap().get_connection().unwrap();
    let ttl_ms = TTL.as_millis();
    let say = |what: &str, at: u64| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nworker {what} {at}").and_then(|()| out.flush()).unwrap();
    };
    for job in 0_u64.. {
        let holder = format!("{}-{job}", std::process::id());
        let mut deadline = now() + u64::try_from(TTL.as_micros()).unwrap();
        let told = decide(&mut redis, &format!("RL.CONCURRENT places {PLACES} {ttl_ms}ms {holder}"));
        if told[0] == 0 {
            thread::sleep(Duration::from_millis(u64::try_from(told[3]).unwrap().clamp(1, 20)));
            continue;
        }
        say("until", deadline);
        say("begins", now());
        let part = Duration::from_millis(1 + (u64::from(std::process::id()) * 7 + job * 13) % 40);
        thread::sleep(part);
        if job % 2 == 0 {
            let sent = now();
            if decide(&mut redis, &format!("RL.CONCURRENT places {PLACES} {ttl_ms}ms {holder} XX"))[0] == 1 {
                deadline = sent + u64::try_from(TTL.as_micros()).unwrap();
                say("until", deadline);
                thread::sleep(part);
            }
        }
        say("ends", now().min(deadline));
        ask::<i64>(&mut redis, &format!("RL.RELEASE places {holder}"));
    }
}

/// What a worker said.
type Said = (u32, String, u64);

fn start(server: &Server, said: &Sender<Said>) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["concurrent::crashing::worker", "--exact", "--ignored", "--nocapture"])
        .env(PORT, server.port().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (id, out, said) = (child.id(), child.stdout.take().unwrap(), said.clone());
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if let ["worker", what, at] = line.split(' ').collect::<Vec<_>>()[..] {
                let _ = said.send((id, what.to_owned(), at.parse().unwrap()));
            }
        }
    });
    child
}

/// The stretches of time in which places were in use, by what the workers said and when they were killed. Each is at most as long as it
/// was.
fn stretches(said: &Receiver<Said>, killed: &HashMap<u32, u64>) -> Vec<(u64, u64)> {
    let mut open: HashMap<u32, (u64, u64)> = HashMap::new();
    let mut stretches = Vec::new();
    for (id, what, at) in said.try_iter() {
        match what.as_str() {
            "until" => open.entry(id).or_insert((0, 0)).1 = at,
            "begins" => open.entry(id).or_insert((0, 0)).0 = at,
            _ => stretches.extend(open.remove(&id).map(|(begin, _)| (begin, at))),
        }
    }
    stretches.extend(open.into_iter().filter_map(|(id, (begin, until))| {
        let end = (*killed.get(&id)?).min(until);
        (begin > 0).then_some((begin, end))
    }));
    stretches
}

fn most_at_once(stretches: &[(u64, u64)]) -> usize {
    let edges = stretches.iter().filter(|(begin, end)| begin < end).flat_map(|&(begin, end)| [(begin, 1), (end, -1)]);
    let mut edges: Vec<(u64, i64)> = edges.collect();
    // What ends at a moment does so before what begins then.
    edges.sort();
    let (mut at_once, mut most) = (0, 0);
    for (_, step) in edges {
        at_once += step;
        most = most.max(at_once);
    }
    usize::try_from(most).unwrap()
}

#[test]
fn places_are_never_given_twice_and_come_back_from_the_dead() {
    let server = Server::new();
    let mut redis = server.connect();
    let (sender, said) = channel();
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| start(&server, &sender)).collect();
    let mut killed = HashMap::new();
    let kill = |worker: &mut Child, killed: &mut HashMap<u32, u64>| {
        killed.insert(worker.id(), now());
        worker.kill().unwrap();
        worker.wait().unwrap();
    };
    // Until there was enough work, and enough death.
    let begin = Instant::now();
    let calls = |redis: &mut Connection| crate::support::calls(redis, "rl.release");
    let mut round = 0;
    while round < 60 || calls(&mut redis) < 300 && begin.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(30));
        let victim = round * 29 % WORKERS;
        kill(&mut workers[victim], &mut killed);
        workers[victim] = start(&server, &sender);
        round += 1;
    }
    // The massacre.
    workers.iter_mut().for_each(|worker| kill(worker, &mut killed));
    let held =
        PLACES - usize::try_from(decide(&mut redis, &format!("RL.CONCURRENT places {PLACES} 1s x 0"))[2]).unwrap();
    thread::sleep(TTL);
    for place in 0..PLACES {
        assert_eq!(decide(&mut redis, &format!("RL.CONCURRENT places {PLACES} 1m survivor-{place}"))[0], 1, "{place}");
    }
    assert_eq!(decide(&mut redis, &format!("RL.CONCURRENT places {PLACES} 1m one-more"))[0], 0);
    // What was said has arrived: all pipes are closed.
    drop(sender);
    thread::sleep(Duration::from_millis(100));
    let stretches = stretches(&said, &killed);
    let most = most_at_once(&stretches);
    println!(
        "{} jobs, {} killed, at most {most} at once, {held} places held by the dead",
        stretches.len(),
        killed.len()
    );
    assert!(stretches.len() > 200, "only {} jobs", stretches.len());
    assert!((PLACES - 2..=PLACES).contains(&most), "{most} at once");
}
