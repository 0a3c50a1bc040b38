package push

import (
	"strconv"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var (
	watchedDocument   = client.DocumentKind{Name: "watched", Format: 1}
	watchPageDocument = client.DocumentKind{Name: "watchPage", Format: 1}
)

// A watchPageDoc is the stored form of a repository.WatchPage: the cursors of up to 500 watches.
type watchPageDoc struct {
	ID           string   `json:"id"`
	PartitionKey string   `json:"partitionKey"`
	Kind         string   `json:"kind"`
	WriteID      string   `json:"writeId"` // id of the write that last changed the cursors
	Cursors      []string `json:"cursors"`
	Served       int64    `json:"served,omitempty"`
	client.Document
}

func (*watchPageDoc) DocumentKind() client.DocumentKind { return watchPageDocument }

func (d *watchPageDoc) toWatchPage() (repository.WatchPage, error) {
	var p documentParser
	page := repository.WatchPage{
		Cursors: parseAll(&p, d.Cursors, domain.ParseCursorID), Served: d.Served, Version: repository.WatchPageVersion(d.WriteID),
	}
	if p.err != nil {
		return page, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return page, nil
}

// watchedID returns the id of a watched stream's entry in a shard. The prefix distinguishes it from the ids
// of cursors.
func watchedID(stream domain.StreamName) string { return "watched|" + stream.String() }

// watchPagesKey returns the partition key of the watch pages of a stream in a shard. shard is the
// partition key of the shard.
func watchPagesKey(shard, stream string) string { return shard + "|" + stream }

func watchPageID(page int) string { return "page|" + strconv.Itoa(page) }
