package simulate

// ends holds what is left in the end to what is to be left, in a world in which all
// was delivered.
func (w *world) ends() error {
	for _, holds := range []func() error{w.ledger.check, w.noticesArrive, w.endsOnTheBus} {
		if err := holds(); err != nil {
			return err
		}
	}
	return nil
}
