"""Structure: what groups, rules and constraints cost, beside peers that know some of them."""
