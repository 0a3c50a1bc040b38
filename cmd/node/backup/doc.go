// Package backup writes a data folder to an archive, verifies archives, and
// restores a folder from an archive.
//
// # Contents of an archive
//
// An archive contains the state that a loss of power at a moment T would have
// left in the folder. It may also contain some contents that were stored after
// T:
//
//   - The files of the messages and of the documents are read in transactions that both begin
//     at T, while no document is committed ([disk.TakeSnapshot]). So every guarantee about
//     messages and documents that survives a crash also holds for the archive. An event that was
//     received from the bus is still on the bus, or is stored, or both; in the last case the
//     message is a duplicate. A notice that belongs to a document was sent, or is still in the
//     document. The same holds for streams, for cursors of receivers and for the rows of objects,
//     which are documents. A Save that was in progress at T is unfinished, as after a crash:
//     check --repair, or the next Save, rolls it back.
//   - Content and exchange are read after T. Every content that a document or a message of T
//     names existed at T, because a content is stored before it is named. From before T until
//     the last file is read, deleted contents are held ([datafolder.Hold]), so every named
//     content can still be read. The sweep, a Dequeue and a domain may delete contents during the
//     backup; clients no longer see these contents. No document of the archive names a content
//     that was stored after T; such a content is like one that a crash leaves of an unfinished
//     Save. Names of the hub's own content are never used again, because each contains the id
//     of its write. A domain may replace a content in the exchange at any time; the archive has
//     one of the versions.
//   - The identity of the folder is kept, because each store contains it.
//   - push.key is included, because without it the secrets of subscriptions cannot be read. So an
//     archive needs the same protection as the folder. admin.token is not included; the hub
//     creates another token.
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
// A reader refuses an archive of a newer format, a truncated archive, and an
// archive with any changed byte.
//
// # Restoring
//
// A restore writes only below the data folder, which may therefore be a mount.
// The restored data becomes visible in one step: files are extracted to
// ".restore", which is renamed to ".restored" when all of them are verified and
// durable. [Finish] then moves the files to their places. If Finish is
// interrupted, the next start of the hub completes it. A failure or a kill
// before the rename leaves only ".restore". A hub does not start with this
// folder, and the next Restore removes it.
package backup
