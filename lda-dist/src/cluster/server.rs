//! A server of a run: rows that workers ask for, in rounds that the master calls.

use lda_core::counts::TopicIndex;
use lda_transport::endpoint::{Action, Draft, Ticket};
use lda_transport::{Frame, NodeId};

use super::control::{Control, put_parts};
use super::{Failed, MASTER, Port, Setup, fatal};
use crate::server::Server;
use crate::together::place;
use crate::wire::RowCode;

/// A server of a run.
#[derive(Debug)]
pub struct ServerNode<T: TopicIndex> {
    setup: Setup,
    number: u32,
    server: Option<Server<T>>,
    totals: Vec<u32>,
    finished: bool,
    failed: Option<Failed>,
}

impl<T: TopicIndex> ServerNode<T> {
    /// Server `number` of this run, from 0 on.
    pub fn new(setup: Setup, number: u32) -> Self {
        let totals = vec![0; setup.job.topics() as usize];
        Self { setup, number, server: None, totals, finished: false, failed: None }
    }

    /// Its rows, once words are placed.
    pub fn rows(&self) -> Option<&Server<T>> {
        self.server.as_ref()
    }

    /// Whether the master has said that it was the last round.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Why it has given up, if it has.
    pub fn failed(&self) -> Option<&Failed> {
        self.failed.as_ref()
    }

    /// A node has closed.
    pub fn closed(&mut self, peer: NodeId) {
        if peer == MASTER && !self.finished {
            self.failed.get_or_insert(Failed::Away { peer });
        }
    }

    /// What the endpoint says.
    pub fn act(&mut self, action: Action, port: &mut dyn Port) {
        if self.failed.is_some() {
            return;
        }
        if let Some(failed) = fatal(&action) {
            self.failed = Some(failed);
            return;
        }
        if let Action::Asked { ticket, body, .. } = action {
            match self.asked(ticket, &body) {
                Ok(reply) => port.reply(ticket, Draft::from(&reply[..])),
                // A worker's mistake is the worker's to hear of; the master's ends the run here.
                Err(error) => {
                    port.reject(ticket, Draft::from(error.to_string().as_bytes()));
                    if ticket.peer == MASTER {
                        self.failed = Some(error);
                    }
                }
            }
        }
    }

    fn asked(&mut self, ticket: Ticket, body: &Frame) -> Result<Vec<u8>, Failed> {
        let Self { setup, server, totals, .. } = self;
        let (job, peer) = (&setup.job, ticket.peer);
        let nonsense = |what: &str| Failed::Message { peer, what: what.to_owned() };
        if peer != MASTER {
            let server =
                server.as_mut().ok_or_else(|| nonsense("a request before words are placed"))?;
            let mut reply = Vec::new();
            server.serve(body, &mut reply)?;
            return Ok(reply);
        }
        match (Control::decode(job.topics(), job.words(), body), server) {
            (Some(Control::Plan { documents, frequencies }), server @ None) => {
                let placement = place(job, &setup.options, &frequencies, documents)?;
                let all = 0..placement.num_partitions() as u32;
                let own = all.filter(|&partition| placement.server(partition) == self.number);
                let own = own.map(|number| (number as u16, placement.words(number).collect()));
                *server = Some(Server::new(job, setup.options.longest, own));
                Ok(Vec::new())
            }
            (Some(Control::End { judged, .. }), Some(server)) => {
                let mut gained = vec![0; totals.len()];
                server.end_round(&mut gained)?;
                let there = gained.iter().enumerate().filter(|(_, by)| **by != 0);
                let row: Result<Vec<(u32, i32)>, _> = there
                    .map(|(topic, &by)| i32::try_from(by).map(|by| (topic as u32, by)))
                    .collect();
                let row = row.map_err(|_| nonsense("a topic gains more than 2^31 tokens here"))?;
                let mut reply = Vec::new();
                RowCode::new(job.topics()).encode(&row, &mut reply);
                if judged {
                    put_parts(&server.log_joint(), &mut reply);
                }
                Ok(reply)
            }
            (Some(Control::Begin { round, gained }), Some(server)) => {
                for (topic, by) in gained {
                    let total = &mut totals[topic as usize];
                    *total =
                        total.checked_add_signed(by).ok_or_else(|| nonsense("totals below 0"))?;
                }
                server.begin_round(round, totals);
                Ok(Vec::new())
            }
            (Some(Control::Rows { partition }), Some(server)) => {
                let mut reply = Vec::new();
                server.rows(partition, &mut reply)?;
                Ok(reply)
            }
            (Some(Control::Finish), Some(_)) => {
                self.finished = true;
                Ok(Vec::new())
            }
            _ => Err(nonsense("a message at a wrong time")),
        }
    }
}
