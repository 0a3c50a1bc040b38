package repository

import "github.com/messagehub/messagehub/domain"

// A Queue has the events of a group of domains for a recipient.
type Queue struct {
	Group   domain.Group
	Waiting domain.Backlog // all unacknowledged events, including the events of Open
	Open    *domain.Bundle // the open bundle, or nil
}

// Acknowledged is a bundle that its recipient has stored safely.
type Acknowledged struct {
	domain.Bundle
	Remaining domain.Backlog // events that wait after the bundle, in the groups of the Peek that opened the bundle
	HasNotice bool           // the outbox has a notice of the bundle
}
