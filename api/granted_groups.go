package api

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// grantedGroups returns the groups of the actor on which the sender of a request may act, or nil
// for all groups.
func grantedGroups(ctx context.Context) []domain.Group {
	p := principalOf(ctx)
	if p == nil {
		return nil
	}
	grant, _ := p.Grant(actorOf(ctx))
	return grant.Groups
}

// restrictGroups returns the groups of a Peek. named contains the groups in the request; nil means
// all. If the sender may act only on some groups, restrictGroups replaces nil with these groups,
// and fails if named contains further groups.
func restrictGroups(ctx context.Context, named []domain.Group) ([]domain.Group, error) {
	granted := grantedGroups(ctx)
	switch {
	case granted == nil:
		return named, nil
	case named == nil:
		return granted, nil
	}
	for _, group := range named {
		if !slices.Contains(granted, group) {
			return nil, refuse(missingRight, "The token may not act on group %s for this actor.", group)
		}
	}
	return named, nil
}

// checkBundle fails unless the sender of a request may act on the group of the bundle. The error is
// the same as for a bundle that is not open.
func (s *Server) checkBundle(ctx context.Context, id domain.BundleID) error {
	granted := grantedGroups(ctx)
	if granted == nil {
		return nil
	}
	queues, err := s.opts.Hub.Queues(ctx, actorOf(ctx))
	if err != nil {
		return err
	}
	for _, q := range queues {
		if q.Open != nil && q.Open.ID == id && slices.Contains(granted, q.Group) {
			return nil
		}
	}
	return asNotOpen(id, domain.Errorf(domain.NotFound, "the bundle is not open in a group that the token grants"))
}
