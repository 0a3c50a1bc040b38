package push

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// readEntry reads the shard entry of a cursor. It returns a NotFound error if the entry does not exist.
func (s *Store) readEntry(ctx context.Context, c *client.Call, id domain.CursorID) (*entryDoc, error) {
	d := &entryDoc{}
	etag, err := c.Read(ctx, s.cursors, shardKey(repository.ShardOf(id)), id.String(), d)
	d.etag = etag
	if client.IsNotFound(err) {
		err = domain.Errorf(domain.NotFound, "there is no such cursor")
	}
	return d, err
}

// AddReplay implements [repository.Shards].
func (s *Store) AddReplay(ctx context.Context, id domain.CursorID, followed int, r domain.ReplayRequest) (number int, err error) {
	c := s.client.Begin("request replay")
	err = c.Retry(ctx, func() error {
		d, err := s.readEntry(ctx, c, id)
		if err != nil {
			return err
		}
		before, err := d.toRequests()
		if err != nil {
			return err
		}
		if stored := before.Find(r.ID); stored != nil {
			number = stored.Number
			return nil
		}
		after, err := before.Add(followed, r)
		if err != nil {
			return err
		}
		number = after[len(after)-1].Number
		known := d.Replays
		d.Replays = nil
		for i := range after {
			if j := slices.IndexFunc(known, func(k replayRequestDoc) bool { return k.ID == after[i].ID }); j >= 0 {
				d.Replays = append(d.Replays, known[j])
			} else {
				d.Replays = append(d.Replays, makeReplayRequestDoc(&after[i]))
			}
		}
		// If the node crashes after this write, no signal announces the request. The owner of the cursor
		// finds the request when it next reads the shard.
		_, err = c.Put(ctx, s.cursors, d.PartitionKey, d.ID, d.etag, d)
		if client.IsRefused(err) {
			return client.ErrStale
		}
		return err
	})
	return number, c.Outcome("request a replay of cursor "+id.String(), err)
}

// Replays implements [repository.Shards].
func (s *Store) Replays(ctx context.Context, id domain.CursorID) (domain.ReplayRequests, error) {
	c := s.client.Begin("read replays")
	d, err := s.readEntry(ctx, c, id)
	var all domain.ReplayRequests
	if err == nil {
		all, err = d.toRequests()
	}
	return all, c.Outcome("read the replays of cursor "+id.String(), err)
}
