// Package content stores the objects of [repository.Content], which are payloads and bundle bodies: a
// [Dir] as files in a folder, [Blobs] as blobs in a container of an Azure Storage account. Blobs is also
// a [repository.Exchange].
//
// # Files
//
// Put writes to a temporary file, makes the file durable, and then links the file to its final name, in
// one step that never replaces a file. So a visible object is complete, and an object survives a power
// failure once Put has returned. After a crash, an unfinished file may remain, which the next OpenDir
// removes:
//
//	+unfinished/…      files that a Put is writing
//	+held/…            files that were deleted during a Hold; removed at the end of the Hold, and by OpenDir
//	payloads/2026/a=   the object payloads/2026/a
//
// Plus and equals signs cannot occur in a name, so any two valid names can be used together.
//
// Only one process at a time may use the folder; the caller must ensure this. Each slash in a name is a
// folder, so the names decide the number of files in a folder. Delete does not remove folders, because
// the next object may use them. The file system must support hard links and distinguish upper and lower
// case.
//
// # Blobs
//
// One request creates an object, on condition that the object does not exist; content above 4 MiB is
// staged in blocks before. The metadata of the object contains the id of its Put. When the response is a
// conflict or is lost, Put reads the metadata: its own id means success, another id means Conflict. If
// the response was lost and the read finds no object, Put fails with Uncertain: only after this failure,
// the object may become visible later.
// A Put has up to three blocks in memory; a reader has no block in memory. Staged blocks of a failed Put
// are not visible, and Azure removes them after a week.
//
// If a connection breaks or transfers no data for a while, a reader continues with another connection,
// on condition that the etag is the same. So a reader yields one version of a blob, or fails with
// Damaged.
//
// A request has up to four attempts of up to 15 seconds, with pauses of up to two seconds. The error of
// the last attempt contains the error code of the account and the id of the request. Its kind is Busy if the
// request was throttled, and NotFound if the blob does not exist. It is Unavailable if the request was
// refused (because of a key, a role, a firewall, a clock) or if the container is missing, because an
// operator can repair these faults while callers retry.
//
// A domain identifies its object by a URI. The scheme, host, port, account and container of the URI must
// be the ones of the exchange, under one of its names. The hub reads only the name of the blob from the
// URI, and never connects to the address. It neither uses nor logs the query of the URI, which often is a
// shared access signature.
package content
