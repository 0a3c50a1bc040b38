package ingest

import "github.com/messagehub/messagehub/domain"

// damagePatience is how often in a row the hub must report a damaged mailbox
// before it is treated as damaged: one read may have seen a change in progress.
const damagePatience = 4

// isDamage reports whether retries cannot succeed until an operator has repaired what is
// stored.
func isDamage(err error) bool { return err != nil && domain.KindOf(err) == domain.Damaged }

// rejectDamaged returns the rejection of a message whose recipient has a
// damaged mailbox.
func rejectDamaged(err error) *rejection {
	return reject(reasonDamaged, "The mailbox of a recipient is damaged, so its events are not stored: %v. Those of others are. "+
		"Repair the mailbox (messagehub check shows its damage), then send this message again: events that are stored are skipped.", err)
}

// giveUp ends the loop of a session whose mailbox is damaged or has a newer
// format. A dead letter would break the order, so all unstored messages return
// to the bus, which delivers them again, perhaps to a node of the newer
// version.
func (s *eventStore) giveUp(damage error) {
	s.damage = damage
	s.loop.Fail(damage)
}
