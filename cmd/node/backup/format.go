package backup

import (
	"errors"
	"time"
)

// Format is the newest format of archives that this version reads, and the one that it writes.
const Format = 1

// The members of the tar file.
const (
	headMember   = "backup.json"
	dataFolder   = "data/"
	digestFolder = "digests/"
	endMember    = "end.json"
)

// digestsEach is the number of files in a member with digests.
const digestsEach = 1000

// maxSmall is the size of the longest member that is read into memory.
const maxSmall = 1 << 20

// The end of an archive is a skippable frame of Zstandard: its number, its length, then
// trailerMagic and a SHA-256.
const (
	trailerStart  = "\x5e\x2a\x4d\x18\x28\x00\x00\x00"
	trailerMagic  = "MHBACKUP"
	trailerLength = len(trailerStart) + len(trailerMagic) + 32
)

// A Head describes an archive. It is its first member.
type Head struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // version of the program that wrote it
	Folder  string    `json:"folder"`  // id of the data folder
	Began   time.Time `json:"began"`   // time of the state in the archive
}

// An end is the last member.
type end struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Progress is how much has been written or read.
type Progress struct {
	Files int64 // files that are complete
	Bytes int64 // bytes of files
}

// ErrNewerFormat reports an archive that a newer version has written.
var ErrNewerFormat = errors.New("a newer version has written the archive; use that version")

// ErrDamaged reports a file that is not an archive, or that differs from what
// was written.
var ErrDamaged = errors.New("the archive is damaged or incomplete, or the file is no archive; nothing of it was restored; use another backup")
