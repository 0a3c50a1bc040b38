// Package content keeps the objects of [repository.Content], payloads and bundle
// bodies, as files in a folder.
//
// Put writes to a file of its own, makes it durable, and only then gives it its
// name, in one step that never replaces anything. So an object is whole from the
// moment it can be seen, and once Put has returned it outlasts a power failure.
// What a crash interrupts leaves at most a file among the unfinished ones, which
// the next OpenDir removes:
//
//	+unfinished/…      what a Put is writing just now
//	payloads/2026/a=   the object payloads/2026/a
//
// The plus and equals signs cannot occur in a name, so every name that is valid
// can be used, next to any other.
//
// The folder belongs to one process at a time, which its owner has to see to.
// How many objects lie in one folder is up to the caller: each slash in a name is
// a folder. Delete leaves the folders, since the next object may want them. The
// file system must know hard links and, so that names which differ in nothing but
// the case are two names, tell upper from lower case.
package content
