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

// A watchPageDoc is a repository.WatchPage.
type watchPageDoc struct {
	ID           string   `json:"id"`
	PartitionKey string   `json:"partitionKey"`
	Kind         string   `json:"kind"`
	WriteID      string   `json:"writeId"` // of the last change of the cursors
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

// watchedID returns the id of the document in a shard that says that it has watches of a stream. No cursor
// id begins like it.
func watchedID(stream domain.StreamName) string { return "watched|" + stream.String() }

// watchPagesKey returns the partition of the pages of a stream in a shard, of which the key is shard.
func watchPagesKey(shard, stream string) string { return shard + "|" + stream }

func watchPageID(page int) string { return "page|" + strconv.Itoa(page) }
