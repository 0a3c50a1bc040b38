package api

// ProblemStatuses are the types of all problems and the status of each.
func ProblemStatuses() map[string]int {
	all := make(map[string]int)
	for p, row := range problems {
		all[string(p)] = row.status
	}
	return all
}

// MaxLoginAddresses is how many addresses failed logins are counted for.
const MaxLoginAddresses = maxAddresses

// LoginAddresses returns how many addresses s counts failed logins for.
func LoginAddresses(s *Server) int { return len(s.logins.addresses) }
