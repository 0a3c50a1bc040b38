package repository

import "github.com/messagehub/messagehub/domain"

// A Queue is what a group of domains has for a recipient.
type Queue struct {
	Group   domain.Group
	Waiting domain.Backlog // all that is not acknowledged, Open included
	Open    *domain.Bundle // the open bundle, or nil
}

// Acknowledged is a bundle that its recipient holds safely.
type Acknowledged struct {
	domain.Bundle
	Behind    domain.Backlog // what waits, in the groups that were asked for when the bundle was opened
	HasNotice bool           // a notice of the bundle was left in the outbox
}
