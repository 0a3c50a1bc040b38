package repository

import "github.com/messagehub/messagehub/domain"

// A Queue has the events of a group of domains for a recipient.
type Queue struct {
	Group   domain.Group
	Waiting domain.Backlog // all unacknowledged events, those of Open included
	Open    *domain.Bundle // the open bundle, or nil
}

// Acknowledged is a bundle that its recipient has stored safely.
type Acknowledged struct {
	domain.Bundle
	Behind    domain.Backlog // what waits after it, in the groups that were asked for when the bundle was opened
	HasNotice bool           // the outbox has a notice of the bundle
}
