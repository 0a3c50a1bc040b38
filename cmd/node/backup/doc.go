// Package backup writes a data folder to an archive, checks archives, and restores a folder
// from one.
//
// # What an archive holds
//
// An archive has what a loss of power at a moment T would have left in the folder, and
// possibly some contents that were stored after T:
//
//   - The files of the messages and of the documents are read in transactions that both begin
//     at T, while no document is committed ([disk.TakeSnapshot]). So every promise about
//     messages and documents that survives a crash holds for the archive: an event that was
//     taken from the bus is still there or is stored, or both, and then it is a duplicate; a
//     notice that a document was going to send has been sent or is still in the document; the
//     same holds for streams and cursors of receivers and for the rows of objects, which are
//     documents. Saves that were under way at T are unfinished, as after a crash: check
//     --repair, or the next Save, rolls them back.
//   - Content and exchange are read after T. Everything that a document or a message of T
//     names was there at T, because it is stored before it is named. From before T until the
//     last file is read, deleted contents are held ([datafolder.Hold]), so all of it is still
//     there. The sweep, a Dequeue and a domain may delete meanwhile; clients no longer see
//     what these delete. No document of the archive names a content that came after T; it is
//     like a content that a crash leaves of an unfinished Save. Names of the hub's own content are not used
//     again: each has the id of its write. A domain may replace a content in the
//     exchange at any time; the archive has one of its versions.
//   - The identity of the folder is kept, because each store carries it.
//   - push.key is included: without it the secrets of subscriptions cannot be read. So an
//     archive is as secret as the folder. admin.token is not included; the hub creates another.
//
// # Format
//
// An archive is one frame of Zstandard with a tar file in it, and a skippable frame with the
// SHA-256 of all that precedes it. Standard tools read it: zstd -dc FILE | tar -t. The tar file has
//
//	backup.json       format, version of the program, id of the folder, time T
//	data/…            the files, as in the folder
//	digests/000001    SHA-256 of the files before it, in the format of sha256sum
//	end.json          numbers of files and bytes
//
// A reader refuses an archive of a newer format, one that is cut off at any place, and one
// with any byte changed.
//
// # Restoring
//
// A folder is restored below itself, so that it may be a mount, and becomes visible in one
// step: files are extracted to ".restore", which is renamed to ".restored" once all of them
// are verified and durable. Then [Finish] moves the files to their places; if it is
// interrupted, the next start of the hub completes it. A failure, or a kill,
// before the rename leaves only ".restore", which the next Restore removes, and with which a
// hub does not start.
package backup
