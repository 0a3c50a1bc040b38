package repositorytest

var raceRules []rule
