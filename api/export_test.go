package api

// ProblemStatuses are the types of all problems and the status of each.
func ProblemStatuses() map[string]int {
	all := make(map[string]int)
	for p, row := range problems {
		all[string(p)] = row.status
	}
	return all
}
