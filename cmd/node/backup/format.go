package backup

import (
	"errors"
	"time"
)

// Format is the archive format that this version writes, and the newest format that it reads.
const Format = 1

// Names of the special members of the tar file.
const (
	headMember   = "backup.json"
	dataFolder   = "data/"
	digestFolder = "digests/"
	endMember    = "end.json"
)

// digestsEach is the maximum number of files that one digests member covers.
const digestsEach = 1000

// maxSmall is the maximum size of a member that is read into memory.
const maxSmall = 1 << 20

// Parts of the trailer. An archive ends with a skippable Zstandard frame: its
// magic number, its length, trailerMagic, and a SHA-256.
const (
	trailerStart  = "\x5e\x2a\x4d\x18\x28\x00\x00\x00"
	trailerMagic  = "MHBACKUP"
	trailerLength = len(trailerStart) + len(trailerMagic) + 32
)

// A Head is the first member of an archive. It describes the archive.
type Head struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // version of the program that wrote the archive
	Folder  string    `json:"folder"`  // id of the data folder
	Began   time.Time `json:"began"`   // time of the state that the archive contains
}

// An end is the last member of an archive. It contains the numbers of files and
// bytes.
type end struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Progress contains how much was written or read so far.
type Progress struct {
	Files int64 // number of completed files
	Bytes int64 // number of bytes of all files
}

// ErrNewerFormat means that a newer version of the program wrote the archive.
var ErrNewerFormat = errors.New("a newer version has written the archive; use that version")

// ErrDamaged means that the archive was changed or truncated, or that the file
// is not an archive.
var ErrDamaged = errors.New("the archive is damaged or incomplete, or the file is no archive; nothing of it was restored; use another backup")
