package cosmos

import (
	"context"
	"maps"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A groupsDoc records the group of each origin. The gate of a group stores the positions up to which an
// actor has acknowledged events. If an origin changed its group, all its events would be delivered again.
type groupsDoc struct {
	ID           string            `json:"id"`
	PartitionKey string            `json:"partitionKey"`
	Groups       map[string]string `json:"groups"` // by origin
	client.Document
}

const (
	groupsID  = "groups"
	groupsKey = "|groups" // no recipient has this id
)

// AdoptGroups compares the groups of this process with the groups recorded in the store, and records new
// origins. It fails with Invalid if an origin has changed its group or is missing. Every node calls
// AdoptGroups before it serves requests.
func (r *Repository) AdoptGroups(ctx context.Context) error {
	c := r.beginCall("adopt groups")
	return client.Classify("compare the groups with those of the store", c.Retry(ctx, func() error {
		stored := &groupsDoc{ID: groupsID, PartitionKey: groupsKey}
		etag, err := c.Read(ctx, r.db.catalog, groupsKey, groupsID, stored)
		if client.IsNotFound(err) {
			etag, err = azcore.ETag(""), nil
		}
		if err != nil {
			return err
		}
		merged, err := r.mergeGroups(stored.Groups)
		if err != nil || maps.Equal(merged, stored.Groups) {
			return err
		}
		stored.Groups = merged
		// A crash before this write leaves the recorded groups unchanged. The next node repeats the write
		// before it serves requests.
		if _, err = c.Put(ctx, r.db.catalog, groupsKey, groupsID, etag, stored); client.IsRefused(err) {
			return client.ErrStale // the next read tells whether the groups are recorded
		}
		return err
	}))
}

// IsUsed reports whether a node has recorded its groups, and so has used the store. It never relies on a
// stale read, and changes nothing.
func (r *Repository) IsUsed(ctx context.Context) (bool, error) {
	isUsed, err := r.beginCall("look for groups").documentExists(ctx, r.db.catalog, groupsKey, groupsID)
	return isUsed, client.Classify("look for the groups of the store", err)
}

func (r *Repository) mergeGroups(stored map[string]string) (map[string]string, error) {
	merged := maps.Clone(stored)
	if merged == nil {
		merged = make(map[string]string)
	}
	configured := make(map[string]bool)
	for _, origin := range r.opts.Groups.Origins() {
		group, err := r.opts.Groups.GroupOf(origin)
		if err != nil {
			return nil, err
		}
		name := origin.String()
		configured[name] = true
		if before, ok := merged[name]; ok && before != group.String() {
			return nil, domain.Errorf(domain.Invalid,
				"origin %s is configured for group %s, but this store has used it in group %s, and changing that would deliver its events again; configure group %s",
				name, group, before, before)
		}
		merged[name] = group.String()
	}
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		if !configured[name] {
			return nil, domain.Errorf(domain.Invalid,
				"origin %s is not configured, but this store has been used with it in group %s; add it to the configuration, so that its events can be delivered",
				name, merged[name])
		}
	}
	return merged, nil
}
