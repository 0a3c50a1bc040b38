package bench

// scenarios are in the order in which they are run: those about one operation first.
var scenarios = []Scenario{}
