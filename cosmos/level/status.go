package level

import (
	"context"

	"github.com/messagehub/messagehub/cosmos/client"
)

// ReadStatus reads the level and the nodes of a store, and writes nothing. The result may be stale by
// some seconds. isThere is false if no node has opened the store yet. ReadStatus fails with NewerFormat
// in the cases in which [Open] does.
func ReadStatus(ctx context.Context, db *client.Database, opts Options) (status Status, isThere bool, err error) {
	catalog, err := db.Container(containerName)
	if err != nil {
		return Status{}, false, err
	}
	s := &Store{client: client.New(db, client.Options{Retries: opts.Retries, Clock: opts.Clock, Random: opts.Random}), catalog: catalog, opts: opts}
	d := &levelDocument{}
	_, err = s.client.Begin("read level").Read(ctx, catalog, documentKey, documentID, d)
	switch {
	case client.IsNotFound(err):
		return Status{}, false, nil
	case err != nil:
		return Status{}, false, client.Classify("read the level of the store", err)
	}
	return s.statusOf(d), true, s.checkKnown(d)
}
