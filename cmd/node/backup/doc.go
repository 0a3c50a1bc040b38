// Package backup writes a data folder to an archive, verifies archives, and
// restores a folder from an archive.
//
// # Contents of an archive
//
// An archive contains the state in which the folder would be after a loss of
// power at a time T. It may also contain some contents that were stored after T:
//
//   - The files of messages and of documents are read in two transactions, which begin at T
//     while no document is being committed ([disk.TakeSnapshot]). Every guarantee about
//     messages and documents that survives a crash therefore also holds for the archive. An
//     event that was received from the bus is on the bus, in the store, or in both; in the last
//     case, the message is a duplicate. A notice of a document was sent, or is still in the
//     document. The same applies to streams, receivers' cursors and rows of objects, which are
//     documents. A Save that was in progress at T is unfinished, as after a crash: check
//     --repair, or the next Save, rolls it back.
//   - Content and exchange are read after T. Every content that a document or a message of T
//     names existed at T, because a content is stored before it is named. Deleted contents are
//     retained until the last file was read ([datafolder.Hold]), so every named content can be
//     read. The sweep, a Dequeue and a domain may delete contents during the backup; clients no
//     longer see these contents. No document of the archive names a content that was stored
//     after T. Such a content is harmless, like one from an unfinished Save. Names of the hub's
//     own contents are never reused, because each contains the id of its write. A domain may
//     replace a content in the exchange at any time; the archive contains one of the versions.
//   - The identity of the folder does not change, because each store contains it.
//   - push.key is included, because without it the secrets of subscriptions cannot be decrypted.
//     An archive therefore needs the same protection as the folder. admin.token is not included;
//     the hub creates a new token.
//
// # Format
//
// An archive is one Zstandard frame that contains a tar file, followed by a
// skippable frame with the SHA-256 of all preceding bytes. Standard tools can
// read it: zstd -dc FILE | tar -t. The tar file contains
//
//	backup.json       format, version of the program, id of the folder, time T
//	data/…            the files, as in the folder
//	digests/000001    SHA-256 of the files before it, in the format of sha256sum
//	end.json          numbers of files and bytes
//
// A reader rejects an archive of a newer format, a truncated archive, and an
// archive in which any byte was changed.
//
// # Restoring
//
// A restore writes only below the data folder, which may therefore be a mount.
// The restored data becomes visible in one step: files are extracted to the
// folder ".restore", which is renamed to ".restored" when all files are verified
// and durable. [Finish] then moves the files to their places. If Finish is
// interrupted, the next start of the hub completes it. If the restore fails or
// is killed before the rename, only ".restore" remains. A hub does not start
// while this folder exists, and the next Restore removes it.
package backup
