#compdef invar
# zsh completion for invar: source <(invar completion zsh)
_invar() {
	local -a opts
	local cur=${words[CURRENT]}
	if [[ $cur == -* ]]; then
		opts=("${(@f)$(${words[1,CURRENT-1]} $cur --generate-bash-completion 2>/dev/null)}")
	else
		opts=("${(@f)$(${words[1,CURRENT-1]} --generate-bash-completion 2>/dev/null)}")
	fi
	if [[ ${#opts} -gt 0 && -n ${opts[1]} ]]; then
		_describe 'values' opts
	else
		_files
	fi
}
compdef _invar invar
