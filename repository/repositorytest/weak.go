package repositorytest

var weakRules []rule
