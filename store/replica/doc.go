// Package replica keeps copies of agents' files in a folder or an S3-compatible
// bucket, a second or two behind, and restores files from them as they were at a
// given time.
//
// # Objects
//
// All objects of an agent are under its id:
//
//	ID/agent.json                              its name, and when it was deleted
//	ID/GENERATION/LEVEL/FIRST-LAST-TIME.ltx    what the transactions FIRST to LAST changed
//
// A generation is a continuous series of transactions; generation names sort by time. It
// begins with a snapshot, transaction 1, and ends when the program cannot be sure to have
// captured everything, for instance after another program changed the file. Level 9 has
// snapshots, level 0 the commits of about a second each. Those are merged into level 1,
// five minutes each, and these into level 2, an hour each. TIME is when the last of the
// transactions was committed, in Unix milliseconds. Transactions are 16 hexadecimal
// digits and TIME is 11. The files are LTX (https://github.com/superfly/ltx).
//
// # Restarts
//
// The file replica.json in the data folder records how far each agent was uploaded, and
// how far an upload in progress went. The next start, even after a kill, continues there
// if package capture can prove that everything since is in the -wal, and if the replica
// ends at one of these two positions. The first object after a kill then replaces the one
// that was in progress, even if that arrives later. Commits that leave the -wal before
// they are uploaded are kept in the folder "replica".
package replica
