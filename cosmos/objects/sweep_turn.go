package objects

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	sweepKey = "sweep" // partition of the sweepDoc
	sweepID  = "sweep"
)

// A sweepDoc is the document of the last sweep. The node that wrote the document last may continue the
// sweep.
type sweepDoc struct {
	ID           string      `json:"id"`
	PartitionKey string      `json:"partitionKey"`
	Kind         string      `json:"kind"`
	Began        time.Time   `json:"began"`
	Moved        time.Time   `json:"moved"`
	Bucket       string      `json:"bucket,omitempty"`
	Shard        int         `json:"shard,omitempty"`
	After        string      `json:"after,omitempty"`
	Done         bool        `json:"done,omitempty"`
	ETag         azcore.ETag `json:"_etag,omitempty"`
	client.Document
}

func (*sweepDoc) DocumentKind() client.DocumentKind { return sweepDocument }

// TakeSweep implements [repository.ObjectSweeper].
func (s *Store) TakeSweep(ctx context.Context, now time.Time, every, lease time.Duration) (sweep repository.ObjectSweep, isTaken bool, err error) {
	if err := ctx.Err(); err != nil {
		return sweep, false, fmt.Errorf("take sweep: %w", err)
	}
	c := s.client.Begin("take sweep")
	d := &sweepDoc{}
	_, err = c.Read(ctx, s.objects, sweepKey, sweepID, d)
	isNew := client.IsNotFound(err)
	switch {
	case err != nil && !isNew:
		return sweep, false, c.Outcome("take sweep", err)
	case isNew:
	case !d.Done && now.Sub(d.Moved).Abs() < lease, d.Done && now.Sub(d.Began).Abs() < every:
		return sweep, false, nil
	}
	if isNew || d.Done {
		d = &sweepDoc{ID: sweepID, PartitionKey: sweepKey, Kind: sweepDocument.Name, Began: now.UTC(), ETag: d.ETag, Document: d.Document}
	}
	sweep, err = s.writeSweep(ctx, c, d, now)
	if client.IsRefused(err) { // another node was first; or the reply to this node's write was lost, and its lease expires unused
		return sweep, false, nil
	}
	return sweep, err == nil, c.Outcome("take sweep", err)
}

// MoveSweep implements [repository.ObjectSweeper]. It also fails if the reply is lost; then another node
// continues the sweep when the lease has expired.
func (s *Store) MoveSweep(ctx context.Context, sweep repository.ObjectSweep, now time.Time) (repository.ObjectSweep, error) {
	if err := ctx.Err(); err != nil {
		return sweep, fmt.Errorf("move sweep: %w", err)
	}
	c := s.client.Begin("move sweep")
	d := &sweepDoc{}
	if _, err := c.Read(ctx, s.objects, sweepKey, sweepID, d); err != nil {
		return sweep, c.Outcome("move sweep", err)
	}
	if string(d.ETag) != string(sweep.Version) {
		return sweep, domain.Errorf(domain.Conflict, "move sweep: another node sweeps")
	}
	d.Bucket, d.Shard, d.After, d.Done = sweep.Shard.Bucket, sweep.Shard.Number, sweep.After, sweep.IsDone
	moved, err := s.writeSweep(ctx, c, d, now)
	if client.IsRefused(err) {
		return sweep, domain.Errorf(domain.Conflict, "move sweep: another node sweeps")
	}
	return moved, c.Outcome("move sweep", err)
}

func (s *Store) writeSweep(ctx context.Context, c *client.Call, d *sweepDoc, now time.Time) (repository.ObjectSweep, error) {
	d.Moved = now.UTC()
	etag, err := c.Put(ctx, s.objects, sweepKey, sweepID, d.ETag, d)
	return repository.ObjectSweep{
		Shard: repository.ObjectShard{Bucket: d.Bucket, Number: d.Shard}, After: d.After, IsDone: d.Done, Version: repository.SweepVersion(etag),
	}, err
}
