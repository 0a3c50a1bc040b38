// Package content keeps the objects of [repository.Content], payloads and bundle
// bodies: a [Dir] as files in a folder, [Blobs] as blobs in a container of an Azure
// Storage account. Blobs is a [repository.Exchange] as well.
//
// # Files
//
// Put writes to a temporary file, makes it durable, and only then gives it its name, in one step
// that never replaces a file. So a visible object is complete, and once Put has returned it survives
// a power failure. After a crash there may be an unfinished file, which the next OpenDir removes:
//
//	+unfinished/…      files that a Put is writing
//	+held/…            files that were deleted during a Hold; removed at its end, and by OpenDir
//	payloads/2026/a=   the object payloads/2026/a
//
// Plus and equals signs cannot occur in a name, so any two valid names can be used together.
//
// Only one process at a time may use the folder; its owner must ensure that. The caller decides the
// number of objects in a folder: each slash in a name is a folder. Delete keeps folders, because the
// next object may use them. The file system must support hard links and distinguish upper and lower
// case, as names do.
//
// # Blobs
//
// One request creates an object, on condition that it does not exist; content above 4 MiB is staged
// in blocks before. The object has the id of its Put. So when the answer is a conflict, or is lost,
// Put reads the object: its own id means success, another id means Conflict. If the account does not
// answer either, Put fails with Uncertain; that is the only failure after which an object may
// appear. A Put has up to three blocks in memory, a reader none. Staged blocks of a Put that failed
// are not visible, and Azure removes them after a week.
//
// A reader whose connection breaks, or carries nothing for a while, continues with another one,
// which must find the same etag: it yields one version of a blob, or fails with Damaged.
//
// A request has up to four attempts of up to 15 seconds, with pauses of up to two seconds. The error
// then has the code of the account and the id of the request. Its kind is Busy if the request was
// throttled; Unavailable if it was refused (because of a key, a role, a firewall, a clock) or the
// container is missing, since an operator can repair that while callers try again; and NotFound if
// the blob does not exist.
//
// A domain names its object by a URI. The scheme, host, port, account and container must be those of
// the exchange, under one of its names. The hub takes only the name from the URI, and never connects
// to its address. The part after a question mark, most often a shared access signature, is neither
// used nor shown.
package content
