# SPDX-License-Identifier: Apache-2.0
#
# A web service whose handler waits for its database: four queries of a quarter of a second, one after the other.
# Ordinary blocking Ruby; it knows of nothing below it. Settings come from the environment.

require "mysql2"
require "sinatra/base"

class Service < Sinatra::Base
  set :environment, :production
  set :logging, false

  # A connection for each thread of the server, made when it is first needed.
  def database
    Thread.current[:database] ||= Mysql2::Client.new(
      socket: ENV.fetch("DATABASE_SOCKET"), username: "root", reconnect: true
    )
  end

  get "/" do
    4.times { database.query("select sleep(0.25)").to_a }
    "done\n"
  end

  get("/up") { "yes\n" }
end
