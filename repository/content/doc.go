// Package content keeps the objects of [repository.Content], payloads and bundle
// bodies: a [Dir] as files in a folder, [Blobs] as blobs in a container of an Azure
// Storage account. Blobs is a [repository.Exchange] as well.
//
// # Files
//
// Put writes to a file of its own, makes it durable, and only then gives it its
// name, in one step that never replaces anything. So an object is whole from the
// moment it can be seen, and once Put has returned it outlasts a power failure.
// What a crash interrupts leaves at most a file among the unfinished ones, which
// the next OpenDir removes:
//
//	+unfinished/…      what a Put is writing just now
//	+held/…            what was deleted during a Hold; removed at its end, and by OpenDir
//	payloads/2026/a=   the object payloads/2026/a
//
// The plus and equals signs cannot occur in a name, so every name that is valid
// can be used, next to any other.
//
// The folder belongs to one process at a time, which its owner has to see to.
// How many objects lie in one folder is up to the caller: each slash in a name is
// a folder. Delete leaves the folders, since the next object may want them. The
// file system must know hard links and, so that names which differ only in
// case are two names, distinguish upper and lower case.
//
// # Blobs
//
// One request makes an object, on the condition that it does not exist, and what is
// larger than 4 MiB has been staged in blocks before. The object carries the id of
// its Put. So when the answer is a conflict, or is lost, Put reads the object: its own
// id is success, another is Conflict. If the account cannot even be asked, Put
// fails with Uncertain; that is the one failure after which an object may appear.
// Three blocks at most are in memory for a Put, nothing for a reader. Staged blocks
// of a Put that failed are not visible, and Azure removes them after a week.
//
// A reader whose connection breaks, or carries nothing for a while, continues with
// another, which has to find the same etag: it yields one version of a blob, or
// fails with Damaged.
//
// An answer is tried for 15 seconds, four times at most, two seconds apart at most.
// The error then has the code of the account and the id of its request, in
// these kinds: throttled is Busy; refused (a key, a role, a firewall, a clock) and a
// missing container are Unavailable, since an operator can repair them while callers
// try again; a blob that is not there is NotFound.
//
// A domain names what it has left by a URI. Its scheme, host, port, account and
// container have to be those of the exchange, under one of its names; it gives the
// hub a name and never an address to call. What follows a question mark, most often
// a shared access signature, is neither used nor shown.
package content
