package ingest

import "github.com/messagehub/messagehub/domain"

// damagePatience is the number of consecutive reports of damage after which ingestion treats a
// mailbox as damaged. A single report may come from reading a change in progress.
const damagePatience = 4

// isDamage reports whether err means that stored data is damaged, so that retries fail until an
// operator repairs the data.
func isDamage(err error) bool { return err != nil && domain.KindOf(err) == domain.Damaged }

// rejectDamaged returns the rejection for a message to a damaged mailbox.
func rejectDamaged(err error) *rejection {
	return reject(reasonDamaged, "The mailbox of a recipient is damaged, so its events are not stored: %v. The events of other recipients are stored. "+
		"Repair the mailbox (messagehub check shows its damage), then send this message again: events that are stored are skipped.", err)
}

// giveUp ends the loop of a session whose mailbox is damaged or has a newer format. A dead letter
// would break the order of the session, so all unstored messages return to the bus. The bus
// delivers them again, perhaps to a node of the newer version.
func (s *eventStore) giveUp(damage error) {
	s.damage = damage
	s.loop.Fail(damage)
}
