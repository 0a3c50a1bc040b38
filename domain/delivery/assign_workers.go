package delivery

// assignWorkers assigns workers to queues, and returns the queue of each worker. With at least as
// many workers as queues, each queue gets one worker. All other workers go to random queues. The
// weight of a queue is its length plus one.
func assignWorkers(workers int, lengths []int, random func() uint64) []int {
	var assigned []int
	if workers >= len(lengths) {
		for q := range lengths {
			assigned = append(assigned, q)
		}
	}
	total := len(lengths)
	for _, n := range lengths {
		total += n
	}
	for len(assigned) < workers {
		drawn := int(random() % uint64(total)) //nolint:gosec // total is positive, the rest below it
		for q, n := range lengths {
			if drawn -= n + 1; drawn < 0 {
				assigned = append(assigned, q)
				break
			}
		}
	}
	return assigned
}
