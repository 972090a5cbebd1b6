 dat #
