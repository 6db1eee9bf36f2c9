// Package changelog keeps what slots still need of a store's history: logs whose writes are in tables by now, and the
// files of ingests. It knows the slots of a store, and how far their consumers are.
//
// What could go wrong, and what is done about it:
//
//   - A log in a table was never synced, and the power fails. It is synced before the edit.
//   - A log is torn, or has writes that failed, or is in an object store. Its history is copied to a .kept file,
//     synced, and listed in its place. So are logs that an Open finds after a crash.
//   - An ingest has no log record. Its files are listed, between the logs.
//   - Blob files of handles in logs become garbage. A listed log names them, and the cleaner leaves them.
//   - A repair without a manifest takes what only a slot needs for the store's. When nothing else needs a log, a table
//     or a blob file, its name becomes NNNNNN.kept.
//   - A file is removed while a slot needs it. An edit says that it is given up; then it is removed, and never before.
//   - The store is another one by now. A history has a random number, and slots carry it.
//   - A mark covers a write that is synced, and fails before it is visible. Marks wait until it is visible.
package changelog
